"""Model folders as files: whole or not at all, and readers change nothing and follow no link."""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import baldur
from baldur.core import atomic_io
from baldur.exceptions import InputError, OutputError
from baldur.saving.folder_files import (
    DATA_FILES,
    MANIFEST_BYTES,
    PRINTED,
    PRINTED_BYTES,
    STATE_BYTES,
    check_place,
    read_folder,
    write_folder,
)
from faults import StoppedError, stopped_after

MOST = 1 << 20


def content(word, card=True):
    """What is written: the word is everywhere."""
    about = {"format": "baldur model", "schema": 4, "versions": {}, "word": word}
    printed = {"card.json": f'"{word}"'.encode(), "card.md": word.encode()} if card else {}
    return about, {"state": f'"{word}"'.encode(), "arrays": word.encode() * 10, **printed}


def write(folder, word, overwrite=True, card=True):
    write_folder(folder, *content(word, card), overwrite=overwrite)
    return folder


def word_of(folder, with_card=True):
    """The word of a folder, once all of it is of one model."""
    manifest, printed = read_folder(folder, MOST)
    state, arrays = printed.pop("state"), printed.pop("arrays")
    word = manifest["word"]
    assert state == f'"{word}"'.encode()
    assert arrays == word.encode() * 10
    assert set(printed) <= {"card.json"}
    assert printed.get("card.json", state) == state
    if with_card:
        assert set(printed) == {"card.json"}
        assert (folder / "card.md").read_text() == word
    return word


def listed(folder):
    return {one.name for one in folder.iterdir()}


def snapshot(root):
    """Everything below a folder, with the times of last change."""
    found = {}
    for one in sorted(root.rglob("*"), key=str):
        about = os.lstat(one)
        held = os.readlink(one) if stat.S_ISLNK(about.st_mode) else None
        if stat.S_ISREG(about.st_mode):
            held = one.read_bytes()
        found[str(one)] = (about.st_mode, about.st_ino, about.st_mtime_ns, held)
    return found


# -- writing -------------------------------------------------------------------------------------


def test_a_save_over_a_model_leaves_nothing_of_it_and_others_alone(tmp_path):
    folder = write(tmp_path / "model", "old")
    assert listed(folder) == {"manifest.json", *DATA_FILES[0], "card.json", "card.md", ".lock"}
    (folder / "notes.txt").write_text("mine")
    for word, place in (("new", 1), ("newer", 0)):
        write(folder, word)
        assert word_of(folder) == word
        known = {"manifest.json", *DATA_FILES[place], "card.json", "card.md", ".lock"}
        assert listed(folder) == {*known, "notes.txt"}
    write(folder, "without a card", card=False)
    assert word_of(folder, with_card=False) == "without a card"
    assert not listed(folder) & set(PRINTED)
    assert (folder / "notes.txt").read_text() == "mine"


def test_the_identity_is_of_the_model_and_not_of_its_place(tmp_path):
    one = write(tmp_path / "one", "same")
    two = write(write(tmp_path / "two", "other"), "same")
    assert (one / "state.json").exists()
    assert (two / "state-2.json").exists()
    assert read_folder(one, MOST)[0]["identity"] == read_folder(two, MOST)[0]["identity"]


def test_stopped_at_any_step_there_is_the_old_model_or_the_new(tmp_path, monkeypatch):
    """Let every single call to the system be the last one, in turn; readers repair nothing."""
    stopped, found = 0, set()
    for last in range(1000):
        folder = write(tmp_path / str(last), "old")
        try:
            with stopped_after(monkeypatch, last):
                write(folder, "new")
        except StoppedError:
            stopped += 1
        else:
            assert word_of(folder) == "new"
            break
        before = snapshot(folder)
        found.add(word_of(folder, with_card=False))
        assert snapshot(folder) == before
        # The next one to save removes what was left behind.
        write(folder, "third")
        assert word_of(folder) == "third"
        assert len(listed(folder)) == 6
    assert stopped >= 12
    assert found == {"old", "new"}


def test_stopped_in_a_new_folder_the_place_can_be_used_again(tmp_path, monkeypatch):
    for last in range(1000):
        folder = tmp_path / str(last)
        try:
            with stopped_after(monkeypatch, last):
                write(folder, "new", overwrite=False)
        except StoppedError:
            pass
        else:
            break
        if (folder / "manifest.json").exists():
            assert word_of(folder, with_card=False) == "new"
        elif folder.exists():
            with pytest.raises(InputError, match="has no manifest"):
                read_folder(folder, MOST)
            write(folder, "again", overwrite=False)
            assert word_of(folder) == "again"
    assert last > 10


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_changes_nothing_and_leaves_no_parts(tmp_path, monkeypatch, step):
    folder = write(tmp_path / "model", "old")
    before = snapshot(folder)

    def broken(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic_io.os, step, broken)
        with pytest.raises(OutputError, match=r"No space left.*free some space"):
            write(folder, "new")
        with pytest.raises(OutputError):
            write(tmp_path / "fresh", "new")
    assert snapshot(folder) == before
    assert not (tmp_path / "fresh").exists()


def test_places_that_are_something_else_are_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "state.json").write_text("mine")
    (tmp_path / "broken link").symlink_to(tmp_path / "nowhere")
    for name, said in (("file", "not a folder"), ("folder", "not a model folder"),
                       ("broken link", "not a folder")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            check_place(tmp_path / name, overwrite=True)
    assert (tmp_path / "folder" / "state.json").read_text() == "mine"
    folder = write(tmp_path / "model", "old")
    with pytest.raises(InputError, match="holds a model already"):
        write(folder, "new", overwrite=False)
    (tmp_path / "empty").mkdir()
    assert word_of(write(tmp_path / "empty", "new", overwrite=False)) == "new"


def test_links_in_a_folder_are_replaced_and_not_followed(tmp_path):
    """Somebody else's folder is saved to: what its links lead to stays as it is."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine")
    folder = write(tmp_path / "model", "old")
    for name in ("state-2.json", "arrays-2.safetensors", "card.md", "card.json", "manifest.json"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(victim)
    for name in (".new", ".moving", f".{'0' * 32}.part"):
        (folder / name).symlink_to(mine)
    write(folder, "new")
    assert word_of(folder) == "new"
    assert victim.read_text() == "mine"
    assert (mine / "file").read_text() == "mine"
    (folder / ".lock").unlink()
    (folder / ".lock").symlink_to(victim)
    with pytest.raises(OutputError):
        write(folder, "newer")
    assert word_of(folder) == "new"


# -- reading -------------------------------------------------------------------------------------


def test_readers_ignore_what_lies_beside_a_model(tmp_path):
    """Finding: a folder `.new`, or a link `.moving`, moved the files of a user on loading."""
    folder = write(tmp_path / "model", "good")
    mine = tmp_path / "mine"
    write(mine, "mine")
    (folder / ".moving").symlink_to(mine)
    write(folder / ".new", "evil")
    (folder / f".{'0' * 32}.part").write_text("rest")
    before = snapshot(tmp_path)
    assert word_of(folder) == "good"
    assert snapshot(tmp_path) == before


def test_readers_need_no_right_to_write(tmp_path):
    folder = write(tmp_path / "model", "good")
    (folder / ".lock").unlink()
    before = snapshot(tmp_path)
    folder.chmod(0o555)
    try:
        assert word_of(folder) == "good"
    finally:
        folder.chmod(0o755)
    assert set(snapshot(tmp_path)) == set(before)


@pytest.mark.parametrize("name", ["manifest.json", "state.json", "arrays.safetensors", "card.json"])
def test_a_link_a_pipe_or_a_folder_in_place_of_a_file_is_refused(tmp_path, name):
    folder = write(tmp_path / "model", "good")
    real = tmp_path / "real"
    shutil.move(folder / name, real)
    (folder / name).symlink_to(real)
    with pytest.raises(InputError, match="not a plain file"):
        read_folder(folder, MOST)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match="not a plain file"):
        read_folder(folder, MOST)
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(InputError, match=r"not a plain file|cannot be read"):
        read_folder(folder, MOST)


def test_a_folder_may_be_reached_through_a_link_of_the_user(tmp_path):
    write(tmp_path / "model", "good")
    (tmp_path / "latest").symlink_to(tmp_path / "model")
    assert word_of(tmp_path / "latest") == "good"


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("manifest.json", MANIFEST_BYTES),
        ("state.json", STATE_BYTES),
        ("arrays.safetensors", MOST),
        ("card.json", PRINTED_BYTES),
    ],
)
def test_files_that_are_too_large_are_refused_before_they_are_read(tmp_path, name, most):
    folder = write(tmp_path / "model", "good")
    with open(folder / name, "r+b") as file:
        file.truncate(200 << 30)  # sparse: it takes no room
    with pytest.raises(InputError, match=rf"{name} has 214,748,364,800 bytes, and {most:,} are"):
        read_folder(folder, MOST)


def test_a_lack_of_memory_is_an_error_of_ours(tmp_path, monkeypatch):
    folder = write(tmp_path / "model", "good")

    def broken(*_, **__):
        raise MemoryError

    monkeypatch.setattr("baldur.saving.folder_files.os.fdopen", broken)
    with pytest.raises(InputError, match="more than there is memory for"):
        read_folder(folder, MOST)


def edit(folder, change):
    value = json.loads((folder / "manifest.json").read_text())
    change(value)
    (folder / "manifest.json").write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.update(word="other"), "was changed after"),
        (lambda m: m.update(more=1), "was changed after"),
        (lambda m: m.pop("identity"), "was changed after"),
        (lambda m: m.update(identity=[]), "was changed after"),
        (lambda m: m["checksums"].update(arrays="0" * 64), "was changed after"),
        (lambda m: m["checksums"].update({"../secret": "0"}), "not one that baldur wrote"),
        (lambda m: m["checksums"].pop("state"), "not one that baldur wrote"),
        (lambda m: m.update(checksums=None), "not one that baldur wrote"),
        (lambda m: m.update(data_files=["../state.json", "x"]), "not one that baldur wrote"),
        (lambda m: m.update(data_files=["state.json", "arrays-2.safetensors"]), "not one that"),
        (lambda m: m.update(data_files=[["state.json"], 3]), "not one that baldur wrote"),
        (lambda m: m.update(data_files=list(DATA_FILES[1])), "state-2.json is missing"),
        (lambda m: m.update(format="other"), "not one that baldur wrote"),
        (lambda m: m.update(schema=True), "not one that baldur wrote"),
        (lambda m: m.update(schema=0), "not one that baldur wrote"),
        (lambda m: m.update(schema=2), "reads schema 4. Fit the model again"),
        (lambda m: m.update(schema=5, versions={"baldur": "9.9\n"}), "'9.9.n'.*Install a newer"),
        (lambda m: m.update(schema=10**30), "Install a newer"),
    ],
)
def test_an_edited_manifest_is_refused(tmp_path, change, said):
    folder = write(tmp_path / "model", "good")
    edit(folder, change)
    with pytest.raises(InputError, match=said) as caught:
        read_folder(folder, MOST)
    assert len(str(caught.value).splitlines()) == 1


def test_formatting_and_the_page_are_free_and_a_card_may_be_taken_away(tmp_path):
    folder = write(tmp_path / "model", "good")
    edit(folder, lambda m: None)
    (folder / "card.md").write_text("My own words.")
    (folder / "card.json").unlink()
    assert read_folder(folder, MOST)[0]["word"] == "good"
    (folder / "card.json").write_text('"other"')
    with pytest.raises(InputError, match=r"card\.json is not what the manifest says"):
        read_folder(folder, MOST)


@pytest.mark.parametrize("name", ["state.json", "arrays.safetensors"])
def test_other_content_is_refused(tmp_path, name):
    folder = write(tmp_path / "model", "good")
    (folder / name).write_bytes((folder / name).read_bytes()[:-1] + b"?")
    with pytest.raises(InputError, match=f"{name} is not what the manifest says"):
        read_folder(folder, MOST)


def test_what_is_not_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "absent", tmp_path / "file", tmp_path / "empty", Path("a\0b")):
        with pytest.raises(InputError, match="is not a model folder"):
            read_folder(place, MOST)


def test_readers_beside_a_writer_see_one_model(tmp_path):
    """Saves follow each other as fast as they can; no reader ever meets a mixture or nothing."""
    folder = write(tmp_path / "model", "0")
    done = threading.Event()

    def keep_writing():
        for i in range(1, 60):
            write(folder, str(i))
        done.set()

    writer = threading.Thread(target=keep_writing)
    writer.start()
    seen = set()
    while not done.is_set():
        seen.add(word_of(folder, with_card=False))
    writer.join()
    assert word_of(folder) == "59"
    assert len(seen) > 3


@pytest.mark.slow
def test_really_killed_at_any_moment(tmp_path):
    """A process that saves again and again, killed ten times."""
    folder = write(tmp_path / "model", "0")
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path; from saving.test_folders import write\n"
        "print('ready', flush=True); i = 0\n"
        "while True: i += 1; write(Path(sys.argv[1]), str(i))\n"
    )
    for delay in range(0, 30, 3):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(folder), str(Path(__file__).parents[1])],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(baldur.__file__).parents[1])},
        )
        process.stdout.readline()
        threading.Event().wait(0.01 + 0.003 * delay)
        process.kill()
        process.wait()
        word_of(folder, with_card=False)

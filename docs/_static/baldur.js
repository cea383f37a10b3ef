/* Names for the buttons that unfold the navigation; the theme gives them none. */
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("nav details > summary")) {
    const entry = button.closest("li")?.querySelector("a");
    button.setAttribute("aria-label", `Show the pages of ${entry ? entry.textContent.trim() : "this part"}`);
  }
});

/* Long names may break after a dot, a slash or an underscore, but not before the ending of a file's name. */
document.addEventListener("DOMContentLoaded", () => {
  for (const code of document.querySelectorAll(".bd-article :not(pre) > code")) {
    const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) found.push(texts.currentNode);
    for (const text of found) {
      const parts = text.data.split(/(?<=[a-z0-9][._/])(?=\w{5})/i);
      text.replaceWith(...parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));
    }
  }
});

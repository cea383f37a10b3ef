/* Names for the buttons that unfold the navigation; the theme gives them none. */
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("nav details > summary")) {
    const entry = button.closest("li")?.querySelector("a");
    button.setAttribute("aria-label", `Show the pages of ${entry ? entry.textContent.trim() : "this part"}`);
  }
});

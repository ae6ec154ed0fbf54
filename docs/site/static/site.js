// A page opened as a file may not read other files: search then shows titles without excerpts.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

// The theme's arrows that unfold a list of pages have no name; those who hear the page get one.
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll("details > summary")) {
    const link = arrow.closest("li")?.querySelector("a");
    if (link && !arrow.textContent.trim()) arrow.setAttribute("aria-label", "Pages below " + link.textContent);
  }
});

"use strict";
// The navigation follows the reading; on a narrow screen it closes once a section was chosen.
(() => {
  const menu = document.getElementById("contents");
  const current = document.querySelector(".contents-button span");
  const links = [...menu.querySelectorAll("a")];
  const places = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  let marked = null;

  function follow() {
    const line = innerHeight / 4;
    const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    let at = places.findLastIndex((place) => place && place.getClientRects().length && place.getBoundingClientRect().top <= line);
    if (end && scrollY > 0) at = Math.max(at, links.findLastIndex((link) => !link.closest("ol ol")));
    const link = links[at] || null;
    if (link === marked) return;
    if (marked) marked.removeAttribute("aria-current");
    marked = link;
    if (current) current.textContent = link ? link.textContent : "Contents";
    if (!link) return;
    link.setAttribute("aria-current", "location");
    if (menu.scrollHeight > menu.clientHeight) {
      const [box, frame] = [link.getBoundingClientRect(), menu.getBoundingClientRect()];
      if (box.top < frame.top + 40 || box.bottom > frame.bottom - 40) menu.scrollTop += box.top - frame.top - frame.height / 2;
    }
  }
  let waiting = false;
  const soon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; follow(); });
  };
  addEventListener("scroll", soon, { passive: true });
  addEventListener("resize", soon);
  for (const link of links) {
    link.addEventListener("click", () => { if (menu.matches(":popover-open")) menu.hidePopover(); });
  }
  follow();
})();

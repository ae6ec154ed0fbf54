// Sphinx orders pages with the same words by title; this orders them by how much they are about what was asked (BM25).
// conf.py writes `SearchWords` into the index: for every page its length, and how often it has each stem.
const searchWeight = (docname) => {
  const { pages, mean, counts } = SearchWords;
  const asked = new URLSearchParams(location.search).get("q") || "";
  const stemmer = new Stemmer();
  const stems = new Set(splitQuery(asked).map((word) => stemmer.stemWord(word.toLowerCase())));
  const at = pages.findIndex(([name]) => name === docname);
  if (at < 0) return 0;
  let weight = 0;
  for (const stem of stems) {
    const found = counts[stem] || {};
    const count = found[at] || 0;
    const rarity = Math.log(1 + pages.length / (0.5 + Object.keys(found).length));
    weight += (rarity * count) / (count + 0.5 + pages[at][1] / mean);
  }
  return weight;
};

var Scorer = {
  score: ([docname, , , , score]) => score + 6 * searchWeight(docname),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 5, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

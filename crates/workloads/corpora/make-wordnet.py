#!/usr/bin/env python3
"""Makes wordnet.tsv.zst, the corpus that ships with plimsoll, from Debian's package wordnet-base.

Usage (as any user, on a Debian or Ubuntu host with the package lists fetched):

    apt-get download wordnet-base
    dpkg-deb -x wordnet-base_*.deb wordnet
    ./make-wordnet.py wordnet wordnet.tsv.zst

The first line of the result is a JSON object with name, licence, origin and the number of documents;
each further line is one synset: id, category, author, score, title, body, parted by tabs.

    id        part of speech letter and the synset's offset in its data file
    title     the synset's words, commonest first, parted by ", "
    body      the gloss: definition and examples
    category  the lexicographer file, such as noun.animal (45 of them)
    author    the part of speech spelled out (5 of them); WordNet names no author per synset
    score     the number of pointers to other synsets

As many synsets as fit in LIMIT_BYTES packed are taken, evenly over the data files. The result depends only
on the input: no time stamp is stored.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

LIMIT_BYTES = 2_285_500
LEXNAMES = """adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body
noun.cognition noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive
noun.object noun.person noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation
noun.shape noun.state noun.substance noun.time verb.body verb.change verb.cognition verb.communication
verb.competition verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception
verb.possession verb.social verb.stative verb.weather adj.ppl""".split()
SPEECH = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective satellite", "r": "adverb"}


def synsets(root):
    """Yields (id, category, author, score, title, body) of every synset, in the order of the data files."""
    for name in ("noun", "verb", "adj", "adv"):
        for line in (root / "usr/share/wordnet" / f"data.{name}").read_text("latin-1").splitlines():
            if line.startswith("  "):
                continue  # The licence stands in indented lines at the head of each file.
            data, gloss = line.split(" | ", 1)
            parts = data.split()
            words = int(parts[3], 16)
            lemmas = [re.sub(r"\((a|p|ip)\)$", "", parts[4 + 2 * i]).replace("_", " ") for i in range(words)]
            pointers = int(parts[4 + 2 * words])
            speech = SPEECH[parts[2]]
            yield (parts[2] + parts[0], LEXNAMES[int(parts[1])], speech, str(pointers),
                   ", ".join(lemmas), " ".join(gloss.split()))


def licence_of(root):
    """The licence's own words, which must appear on every copy."""
    text = (root / "usr/share/doc/wordnet-base/copyright").read_text()
    body = text.split("License: WordNet3.0\n", 1)[1].split("\nFiles:", 1)[0]
    return "\n".join("" if line.strip() == "." else line[1:] for line in body.rstrip().splitlines())


def pack(documents, count, licence):
    """Packs `count` of the documents, taken at even distances."""
    header = {
        "corpus": "wordnet",
        "documents": count,
        "licence": licence,
        "origin": "WordNet 3.0 synsets (Princeton University, https://wordnet.princeton.edu/), from Debian's "
                  f"package wordnet-base 1:3.0; {count} of {len(documents)} taken at even distances",
    }
    lines = [json.dumps(header)]
    lines += ["\t".join(documents[i * len(documents) // count]) for i in range(count)]
    text = ("\n".join(lines) + "\n").encode()
    # Whoever reads it needs no more memory than the window of 2 MiB.
    command = ["zstd", "--quiet", "--ultra", "-22", "--zstd=wlog=21", "--stdout"]
    return subprocess.run(command, input=text, capture_output=True, check=True).stdout


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, out = Path(sys.argv[1]), Path(sys.argv[2])
    documents, licence = list(synsets(root)), licence_of(root)
    low, high = 10_000, len(documents)
    while low < high:  # The largest count that fits.
        middle = (low + high + 1) // 2
        if len(pack(documents, middle, licence)) <= LIMIT_BYTES:
            low = middle
        else:
            high = middle - 1
    low -= low % 100
    out.write_bytes(pack(documents, low, licence))
    print(f"{out}: {low} of {len(documents)} documents, {out.stat().st_size} bytes packed")


if __name__ == "__main__":
    main()

"""How many blocks there are, and what runs them."""

from collections import Counter

from blocks import OUTPUTS, PROGRAMS, blocks_of, pages
from pages import elsewhere

kinds: Counter[str] = Counter()
for page in pages():
    for block in blocks_of(page):
        if elsewhere(page, block.language, block.code):
            kinds["elsewhere"] += 1
        elif block.language in PROGRAMS:
            kinds["here"] += 1
        elif block.language in OUTPUTS:
            kinds["outputs"] += 1
        else:
            kinds["skipped"] += 1
print(
    f"  code blocks: {sum(kinds.values())}: {kinds['here']} run here, {kinds['outputs']} outputs compared, "
    f"{kinds['elsewhere']} run by tests of other suites, {kinds['skipped']} skipped"
)

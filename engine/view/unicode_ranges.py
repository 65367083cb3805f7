"""Prints unicode_ranges.h from the Unicode tables of the Python that runs it.

python3 engine/view/unicode_ranges.py > engine/view/unicode_ranges.h
"""

import sys
import unicodedata


def ranges(belongs):
    """Ranges of code points that belong; unassigned ones between two of them join them."""
    found, last_assigned = [], None
    for code in range(0x80, 0x110000):
        character = chr(code)
        if unicodedata.category(character) in ("Cn", "Co", "Cs"):
            continue
        if belongs(character):
            if found and found[-1][1] == last_assigned:
                found[-1][1] = code
            else:
                found.append([code, code])
        last_assigned = code
    return found


def is_zero(character):
    jamo_tail = 0x1160 <= ord(character) <= 0x11FF  # drawn inside the syllable they end
    return unicodedata.category(character) in ("Mn", "Me") or jamo_tail


def is_format(character):
    """Invisible characters that move, hide or reorder their neighbours; the joiners stay."""
    return unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and ord(character) not in (0x200C, 0x200D)


def is_wide(character):
    return unicodedata.east_asian_width(character) in ("W", "F") and not is_zero(character)


def table(name, comment, found):
    lines, line = [f"// {comment}", f"inline constexpr CodeRange {name}[] = {{"], "   "
    for first, last in found:
        entry = f" {{0x{first:x}, 0x{last:x}}},"
        if len(line) + len(entry) > 108:
            lines.append(line)
            line = "   "
        line += entry
    return "\n".join([*lines, line, "};"])


def main():
    print(f"""\
// Which characters take no column, two columns, or may not reach a terminal.
// Unicode {unicodedata.unidata_version}. Made by unicode_ranges.py; not for editing.
// clang-format off
#pragma once

namespace eagle::view {{

struct CodeRange {{
  char32_t first;
  char32_t last;
}};
""")
    print(table("zero_width", "Combining marks and the tails of Hangul syllables.", ranges(is_zero)))
    print()
    print(table("double_width", "East Asian Width W or F, emoji included.", ranges(is_wide)))
    print()
    print(table("invisible", "Controls, bidirectional and other formatting, line separators.", ranges(is_format)))
    print("\n}  // namespace eagle::view")


if __name__ == "__main__":
    sys.exit(main())

#include "engine/view/width.h"

#include <gtest/gtest.h>

#include <string>

namespace eagle::view {
namespace {

TEST(Width, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("seed"), 4);
  EXPECT_EQ(display_width("größe ≤ 5"), 9);
  EXPECT_EQ(display_width("名前"), 4);
  EXPECT_EQ(display_width("한국어"), 6);
  EXPECT_EQ(display_width("ｆｕｌｌ"), 8);
}

TEST(Width, MarksTakeNoColumn) {
  EXPECT_EQ(display_width("e\u0301te\u0301"), 3);
  EXPECT_EQ(display_width("\u0301"), 0);
  EXPECT_EQ(display_width("\u1112\u1161\u11ab"), 2);  // one Hangul syllable in three parts
}

TEST(Width, AnEmojiIsTwoColumnsHoweverItIsMade) {
  EXPECT_EQ(display_width("🎉"), 2);
  EXPECT_EQ(display_width("👍🏽"), 2);            // with a skin tone
  EXPECT_EQ(display_width("❤\uFE0F"), 2);             // a narrow symbol shown as an emoji
  EXPECT_EQ(display_width("👩‍👩‍👧"), 2);  // three people, joined
  EXPECT_EQ(display_width("🇯🇵🇫🇷"), 4);                // two flags of two letters
}

TEST(Escaped, ShowsWhatWouldMoveTheCursor) {
  EXPECT_EQ(escaped("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(escaped(std::string("\0\x1b[31m\x7f", 7)), "\\x00\\x1b[31m\\x7f");
  EXPECT_EQ(escaped("\u0085\u2028\u202e\ufeff"), "\\x85\\u{2028}\\u{202e}\\u{feff}");
}

TEST(Escaped, LeavesTextAlone) {
  const std::string text = "größe 名前 🎉 👩‍👩‍👧 a\\b";
  EXPECT_EQ(escaped(text), text);
}

TEST(Escaped, MakesUtf8OfAnyBytes) {
  EXPECT_EQ(escaped("\xff"), "\\xff");
  EXPECT_EQ(escaped("\xc3"), "\\xc3");                             // cut short
  EXPECT_EQ(escaped("\xc0\x80"), "\\xc0\\x80");                    // overlong
  EXPECT_EQ(escaped("\xe0\x80\x80"), "\\xe0\\x80\\x80");           // overlong
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // past the last code point
}

TEST(Cut, EndsInAnEllipsisWhereItDoesNotFit) {
  EXPECT_EQ(cut("right_out", 9), "right_out");
  EXPECT_EQ(cut("right_out", 6), "right…");
  EXPECT_EQ(cut("right_out", 1), "…");
  EXPECT_EQ(cut("right_out", 0), "");
  EXPECT_EQ(cut("", 3), "");
}

TEST(Cut, NeverSplitsACluster) {
  EXPECT_EQ(cut("名前", 3), "名…");
  EXPECT_EQ(cut("名前", 2), "…");
  EXPECT_EQ(cut("e\u0301te\u0301s", 3), "e\u0301t…");
  EXPECT_EQ(cut("e\u0301te\u0301", 3), "e\u0301te\u0301");
  EXPECT_EQ(cut("👩‍👩‍👧👩‍👩‍👧", 3), "👩‍👩‍👧…");
}

}  // namespace
}  // namespace eagle::view

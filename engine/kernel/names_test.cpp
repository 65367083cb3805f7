#include "engine/kernel/names.h"

#include <gtest/gtest.h>

#include <string>

namespace eagle::kernel {
namespace {

TEST(Utf8, AcceptsCharactersOfEveryLength) { EXPECT_TRUE(is_utf8("a\u00e9\u20ac\U0001f600")); }

TEST(Utf8, RefusesWhatIsNotWellFormed) {
  for (const char* text : {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(text)) << quote_name(text);
  }
}

TEST(QuotedName, EscapesWhatWouldSpoilALine) {
  EXPECT_EQ(quote_name("a'b\\\n\x7f\xff"), R"('a\'b\\\x0a\x7f\xff')");
}

TEST(QuotedName, EscapesWhatWouldTurnATextOrSpeakToATerminal) {
  for (const std::string spoils : {"\u009b", "\u061c", "\u200e", "\u2028", "\u202e", "\u2066", "\x1b"})
    EXPECT_EQ(escaped("a" + spoils + "b", '\'').find(spoils), std::string::npos);
  EXPECT_EQ(escaped("\u00e9\u20ac\u2070", '\''), "\u00e9\u20ac\u2070");
}

TEST(QuotedName, CutsLongNamesBetweenCharacters) {
  EXPECT_EQ(quote_name(std::string(64, 'a')), "'" + std::string(64, 'a') + "'");
  EXPECT_EQ(quote_name(std::string(65, 'a')), "'" + std::string(64, 'a') + "…'");
  EXPECT_EQ(quote_name(std::string(63, 'a') + "\u20ac tail"), "'" + std::string(63, 'a') + "…'");
}

}  // namespace
}  // namespace eagle::kernel

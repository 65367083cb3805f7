#include "server/options.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eagle::server {
namespace {

// The options of a command line; empty when the program would end.
std::optional<ProgramOptions> parsed(std::vector<std::string> words) {
  words.insert(words.begin(), {"eagled", "--listen", "unix:/run/eagled.sock"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  ProgramOptions options;
  int exit_code = 0;
  if (!parse(static_cast<int>(arguments.size()), arguments.data(), options, exit_code)) {
    EXPECT_NE(exit_code, 0);
    return {};
  }
  return options;
}

TEST(Options, ThePlaneBudgetTakesUnits) {
  constexpr std::uint64_t mebi = 1u << 20;
  for (const auto& [text, bytes] :
       std::vector<std::pair<std::string, std::uint64_t>>{{"0", 0},
                                                          {"4096", 4096},
                                                          {"512K", mebi / 2},
                                                          {"3M", 3 * mebi},
                                                          {"3MB", 3 * mebi},
                                                          {"64G", 65'536 * mebi},
                                                          {"64GiB", 65'536 * mebi}}) {
    const auto options = parsed({"--plane-budget", text});
    ASSERT_TRUE(options) << text;
    EXPECT_EQ(options->plane_budget_bytes, bytes) << text;
  }
  EXPECT_EQ(parsed({})->plane_budget_bytes, 0u);
}

TEST(Options, APlaneBudgetThatIsNoSizeIsRefused) {
  for (const char* text : {"-1", "lots", "4X", "1.5G", "99999999999999999999", "99999999999G", ""}) {
    EXPECT_FALSE(parsed({"--plane-budget", text})) << text;
  }
}

TEST(Options, TheCompileTimeoutIsOneSecondToOneHour) {
  EXPECT_EQ(parsed({})->compile_timeout_s, 60);
  EXPECT_EQ(parsed({"--compile-timeout", "7"})->compile_timeout_s, 7);
  for (const char* text : {"0", "-1", "3601", "soon"})
    EXPECT_FALSE(parsed({"--compile-timeout", text})) << text;
}

TEST(Options, APrivateDaemonIsQuieter) {
  EXPECT_EQ(parsed({})->log_level, "info");
  EXPECT_EQ(parsed({"--owner-fd", "3"})->log_level, "warn");
  EXPECT_EQ(parsed({"--owner-fd", "3", "--log-level", "debug"})->log_level, "debug");
}

}  // namespace
}  // namespace eagle::server

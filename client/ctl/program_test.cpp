// eaglectl as a program: what it prints and how it ends, without a daemon. With one:
// tests/integration/test_eaglectl.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <CLI/CLI.hpp>

#include "client/ctl/program.h"
#include "client/ctl/self_check.h"

namespace eagle {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Ended {
  int code = -1;
  std::string output;  // stdout and stderr
};

Ended eaglectl(const std::string& arguments) {
  const char* program = std::getenv("EAGLECTL");
  if (program == nullptr) return {-1, "EAGLECTL is not set"};
  FILE* pipe = ::popen(("'" + std::string(program) + "' " + arguments + " 2>&1").c_str(), "r");
  Ended ended;
  char part[256];
  while (std::fgets(part, sizeof part, pipe) != nullptr) ended.output += part;
  ended.code = WEXITSTATUS(::pclose(pipe));
  return ended;
}

TEST(Eaglectl, WithoutACommandItShowsHowItIsUsed) {
  EXPECT_EQ(eaglectl("").code, 2);
  EXPECT_EQ(eaglectl("--help").code, 0);
  EXPECT_THAT(eaglectl("--help").output, HasSubstr("info"));
}

TEST(Eaglectl, ShowWantsAGraphAndOneFormat) {
  EXPECT_EQ(eaglectl("show").code, 2);
  EXPECT_EQ(eaglectl("show step --svg --dot").code, 2);
  EXPECT_EQ(eaglectl("show step --png").code, 2);
  EXPECT_THAT(eaglectl("show --help").output, HasSubstr("--mermaid"));
}

TEST(Eaglectl, AnUnknownCommandIsAMistakeOfTheCommandLine) {
  const Ended ended = eaglectl("explode");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("explode"));
}

TEST(Eaglectl, UnknownWordsAreAnsweredWithTheNearest) {
  CLI::App app;
  ctl::Options options;
  ctl::Chosen chosen;
  ctl::describe(app, options, chosen);
  const auto said = [&](std::vector<std::string> words) { return ctl::unknown_word(app, words); };
  EXPECT_THAT(said({"grahps"}), HasSubstr("'graphs'"));
  EXPECT_THAT(said({"--json", "sesions"}), HasSubstr("'sessions'"));
  EXPECT_THAT(said({"--endpoint", "unix:x", "inf"}), HasSubstr("'info'"));
  EXPECT_THAT(said({"--endpoint=unix:x", "inf"}), HasSubstr("'info'"));
  EXPECT_THAT(said({"show", "step", "--svgs"}), HasSubstr("'--svg'"));
  EXPECT_THAT(said({"--jsn", "info"}), HasSubstr("'--json'"));
  EXPECT_EQ(said({"show"}), "");  // something else is wrong
  EXPECT_EQ(said({"show", "whatever"}), "");
  EXPECT_EQ(said({"record", "f", "--", "--program"}), "");
  EXPECT_THAT(said({"evil\x1b[2J"}), HasSubstr("evil\\x1b"));
}

TEST(Eaglectl, DocumentsAreMadeForEveryShell) {
  for (const char* kind : {"man", "bash", "zsh", "fish"}) {
    const Ended ended = eaglectl(std::string("document ") + kind);
    EXPECT_EQ(ended.code, 0);
    EXPECT_THAT(ended.output, HasSubstr("doctor")) << kind;
  }
  EXPECT_EQ(eaglectl("document html").code, 2);
  EXPECT_THAT(eaglectl("--help").output, Not(HasSubstr("document ")));  // for who packages it
}

TEST(Eaglectl, ASelfCheckThatFindsOtherBitsSaysWhich) {
  std::vector<std::string> failed;
  const Status done = ctl::self_check({"0000", "1111"}, [&](const ctl::Check& check) {
    if (!check.passed) failed.push_back(check.name + ": " + check.detail);
  });
  ASSERT_TRUE(done.ok()) << done.to_string();
  ASSERT_GE(failed.size(), 3u);  // the interpreter, and the sums of every team
  EXPECT_THAT(failed.front(), HasSubstr("interpreter: expected 0000, found"));
  EXPECT_THAT(failed.back(), HasSubstr("sums: expected 1111, found"));
}

TEST(Eaglectl, ATokenFileMustHoldOneToken) {
  const Ended ended = eaglectl("--token-file /no/such/file --endpoint unix:/no/such.sock info");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("--token-file: '/no/such/file' cannot be read"));
  EXPECT_THAT(eaglectl("--token-file /dev/null info").output, HasSubstr("expected one line with a token"));
}

TEST(Eaglectl, ADaemonThatIsNotThereIsNamedWithTheCure) {
  const Ended ended = eaglectl("--endpoint unix:/no/such/eagled.sock info");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("unix:/no/such/eagled.sock"));
  EXPECT_THAT(ended.output, HasSubstr("eagled --listen"));
}

TEST(Eaglectl, AnEndpointThatCannotBeOneIsExplained) {
  const Ended ended = eaglectl("info --endpoint tcp:host:1");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("TCP"));
}

}  // namespace
}  // namespace eagle

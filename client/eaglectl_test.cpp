// eaglectl as a program: what it prints and how it ends, without a daemon. With one: tests/conformance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace eagle {
namespace {

using ::testing::HasSubstr;

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

#include "server/log_sink.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

namespace eagle::server {
namespace {

using ::testing::HasSubstr;

struct Ends {
  UniqueFd read, write;
};

Ends pipe_ends() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Ends socket_ends() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 65536> part{};
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  for (ssize_t got = 0; (got = ::read(fd, part.data(), part.size())) > 0;)
    text.append(part.data(), std::size_t(got));
  return text;
}

spdlog::logger logger_to(int fd) {
  spdlog::logger logger("test", std::make_shared<LogSink>(fd));
  logger.set_pattern("%v");
  return logger;
}

class LogSinkTest : public ::testing::TestWithParam<Ends (*)()> {};

TEST_P(LogSinkTest, LinesArrive) {
  const Ends ends = GetParam()();
  auto logger = logger_to(ends.write.get());
  logger.info("one");
  logger.warn("two");
  EXPECT_EQ(read_all(ends.read.get()), "one\ntwo\n");
}

// The watchdog ends the test where a line waits.
TEST_P(LogSinkTest, NobodyWaitsForAReaderAndWhatIsLostIsCounted) {
  const Ends ends = GetParam()();
  auto logger = logger_to(ends.write.get());
  constexpr int lines = 10'000;
  for (int i = 0; i < lines; ++i) logger.info("{:0>200}", i);
  const std::string first = read_all(ends.read.get());
  EXPECT_LT(first.size(), std::size_t{lines} * 201);
  logger.info("later");
  const std::string then = read_all(ends.read.get());
  EXPECT_THAT(then, HasSubstr(" lines were dropped"));
  EXPECT_THAT(then, HasSubstr("later\n"));
}

TEST_P(LogSinkTest, TheFlagsOfADescriptorThatOthersShareStay) {
  const Ends ends = GetParam()();
  const int before = ::fcntl(ends.write.get(), F_GETFL);
  logger_to(ends.write.get()).info("one");
  EXPECT_EQ(::fcntl(ends.write.get(), F_GETFL), before);
}

INSTANTIATE_TEST_SUITE_P(To, LogSinkTest, ::testing::Values(&pipe_ends, &socket_ends),
                         [](const auto& each) { return each.index == 0 ? "APipe" : "ASocket"; });

// A stream socket takes a part of what it has no room for.
TEST(LogSinkSocket, ALineThatWasTakenInPartIsFinishedBeforeAnother) {
  const Ends ends = socket_ends();
  auto logger = logger_to(ends.write.get());
  const std::string line(1u << 20, 'x');  // above any buffer
  logger.info("{}", line);
  std::string text = read_all(ends.read.get());
  EXPECT_LT(text.size(), line.size());
  for (int i = 0; i < 100 && text.find("last\n") == std::string::npos; ++i) {
    logger.info("last");
    text += read_all(ends.read.get());
  }
  EXPECT_EQ(text.find('\n'), line.size());
  EXPECT_THAT(text, HasSubstr("last\n"));
}

TEST(LogSinkFile, LinesGoBehindWhatIsThere) {
  const std::string path = ::testing::TempDir() + "log_sink_test_file";
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  ASSERT_EQ(::write(file.get(), "before\n", 7), 7);
  logger_to(file.get()).info("line");
  ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  EXPECT_EQ(read_all(file.get()), "before\nline\n");
  ::unlink(path.c_str());
}

TEST(LogSinkFile, AFullDiskOrAClosedDescriptorLosesLinesOnly) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  logger_to(full.get()).info("nowhere");
  logger_to(-1).info("nowhere");
}

}  // namespace
}  // namespace eagle::server

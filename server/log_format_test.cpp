#include "server/log_format.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/details/log_msg.h>

#include <string>
#include <thread>

#include "server/json_text.h"
#include "server/log_context.h"
#include "server/recent_log.h"

namespace eagle::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

std::string formatted(LogFormat::Kind kind, const std::string& text) {
  const spdlog::details::log_msg message("eagled", spdlog::level::info, text);
  spdlog::memory_buf_t line;
  LogFormat(kind).format(message, line);
  return {line.data(), line.size()};
}

TEST(LogFormat, IdsComeBeforeTheText) {
  const LogScope scope({0xabc, 3, 7, *trace_context(traceparent)});
  EXPECT_THAT(formatted(LogFormat::Kind::text, "built"),
              EndsWith(" info session=0000000000000abc graph=3 launch=7 "
                       "trace=4bf92f3577b34da6a3ce929d0e0e4736 built\n"));
}

TEST(LogFormat, IdsAreFieldsOfAnObject) {
  const LogScope scope({0xabc, 3, 7, *trace_context(traceparent)});
  const std::string line = formatted(LogFormat::Kind::json, "built");
  EXPECT_THAT(line, HasSubstr(R"("level":"info","session":"0000000000000abc","graph":3,"launch":7,)"));
  EXPECT_THAT(line, HasSubstr(R"("span_id":"00f067aa0ba902b7")"));
  EXPECT_THAT(line, EndsWith("\"message\":\"built\"}\n"));
}

TEST(LogFormat, WhatALineIsNotAboutIsNotThere) {
  EXPECT_THAT(formatted(LogFormat::Kind::json, "x"), Not(HasSubstr("session")));
  EXPECT_THAT(formatted(LogFormat::Kind::text, "x"), EndsWith(" info x\n"));
}

TEST(LogFormat, AMessageIsOneLine) {
  for (const auto kind : {LogFormat::Kind::text, LogFormat::Kind::json}) {
    const std::string line = formatted(kind, "one\ntwo\r\n{\"level\":\"error\"}");
    EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
    EXPECT_EQ(line.find('\r'), std::string::npos);
  }
}

TEST(LogScope, AddsToTheOneAroundItAndGoes) {
  const LogScope outer({1, 0, 0, *trace_context(traceparent)});
  {
    const LogScope inner({0, 2, 0, {}});
    EXPECT_EQ(log_ids().session, 1u);
    EXPECT_EQ(log_ids().graph, 2u);
    EXPECT_TRUE(log_ids().trace.given());
    std::thread([] { EXPECT_EQ(log_ids().session, 0u); }).join();
  }
  EXPECT_EQ(log_ids().graph, 0u);
}

TEST(JsonText, IsValidWhateverGoesIn) {
  EXPECT_EQ(json_string("plain"), "\"plain\"");
  EXPECT_EQ(json_string("a\"b\\c\x01\n"), "\"a\\\"b\\\\c\\u0001\\u000a\"");
  EXPECT_EQ(json_string("\xc3\xa9\xe2\x82\xac\xf0\x9f\xa6\x85"), "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\xa6\x85\"");
  // Cut, overlong, a surrogate, above U+10FFFF, a continuation alone.
  EXPECT_EQ(json_string("\xc3"), "\"\\ufffd\"");
  EXPECT_EQ(json_string("\xc0\xaf"), "\"\\ufffd\\ufffd\"");
  EXPECT_EQ(json_string("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");
  EXPECT_EQ(json_string("\xf4\x90\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
  EXPECT_EQ(json_string("\x80z"), "\"\\ufffdz\"");
}

TEST(RecentLog, KeepsTheNewestLines) {
  const auto made = RecentLog::create();
  ASSERT_TRUE(made.ok());
  RecentLog& log = **made;
  log.set_formatter(std::make_unique<LogFormat>(LogFormat::Kind::text));
  for (std::size_t i = 0; i < RecentLog::most_lines + 5; ++i) {
    log.log(spdlog::details::log_msg("eagled", spdlog::level::info, "line " + std::to_string(i)));
  }
  EXPECT_EQ(log.newest().size(), RecentLog::most_lines);
  ASSERT_EQ(log.newest(2).size(), 2u);
  EXPECT_THAT(log.newest(2).back(), EndsWith("line " + std::to_string(RecentLog::most_lines + 4)));
}

TEST(RecentLog, LongLinesAreCutAndPaidFor) {
  const auto made = RecentLog::create();
  ASSERT_TRUE(made.ok());
  RecentLog& log = **made;
  log.set_formatter(std::make_unique<LogFormat>(LogFormat::Kind::text));
  const std::string text(RecentLog::most_bytes / 4, 'x');
  for (int i = 0; i < 100; ++i) log.log(spdlog::details::log_msg("eagled", spdlog::level::info, text));
  const auto lines = log.newest();
  EXPECT_LE(lines.size(), RecentLog::most_bytes / RecentLog::most_line_bytes);
  for (const std::string& line : lines) EXPECT_EQ(line.size(), RecentLog::most_line_bytes);
}

TEST(RecentLog, WhatOneProcessSaidAnotherTells) {
  const auto first = RecentLog::create();
  ASSERT_TRUE(first.ok());
  (*first)->set_formatter(std::make_unique<LogFormat>(LogFormat::Kind::text));
  (*first)->log(spdlog::details::log_msg("eagled", spdlog::level::err, "last words"));
  const auto second = RecentLog::open(UniqueFd(::fcntl((*first)->fd(), F_DUPFD_CLOEXEC, 0)));
  ASSERT_TRUE(second.ok());
  (*second)->set_formatter(std::make_unique<LogFormat>(LogFormat::Kind::text));
  (*second)->log(spdlog::details::log_msg("eagled", spdlog::level::info, "takes over"));
  const auto lines = (*second)->newest();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], EndsWith("last words"));
  EXPECT_THAT(lines[1], EndsWith("takes over"));
}

}  // namespace
}  // namespace eagle::server

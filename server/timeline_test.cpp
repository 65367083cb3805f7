#include "server/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace eagle::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TimelineEvent job(std::uint64_t number) {
  TimelineEvent event;
  event.job = number;
  event.turns = 1;
  event.submitted = 1'000;
  event.begin = 2'500;
  event.end = 4'001;
  event.ids = {0xabc, 7, number, {}};
  return event;
}

std::string json_of(const TimelineEvent& event) {
  return to_trace_json({event}, [](std::uint64_t, std::uint64_t) { return std::string("a \"name\""); });
}

TEST(Timeline, KeepsTheNewestInTheirOrder) {
  Timeline timeline;
  for (std::uint64_t i = 1; i <= Timeline::capacity + 3; ++i) timeline.add(job(i));
  const Timeline::Snapshot now = timeline.snapshot();
  ASSERT_EQ(now.events.size(), Timeline::capacity);
  EXPECT_EQ(now.forgotten, 3u);
  for (std::size_t i = 0; i < now.events.size(); ++i) ASSERT_EQ(now.events[i].job, i + 4);
}

TEST(Timeline, TellsOfOneGraphAlone) {
  Timeline timeline;
  TimelineEvent other = job(0);
  other.ids.graph = 8;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    timeline.add(job(i));
    timeline.add(other);
  }
  const Timeline::Snapshot now = timeline.snapshot(0xabc, 7);
  ASSERT_EQ(now.events.size(), 1000u);
  for (std::size_t i = 0; i < now.events.size(); ++i) ASSERT_EQ(now.events[i].job, i + 1);
  EXPECT_TRUE(timeline.snapshot(0xabd, 7).events.empty()) << "another session's graph of this number";
}

TEST(Timeline, IsEmptyAtFirst) {
  EXPECT_TRUE(Timeline().snapshot().events.empty());
  EXPECT_EQ(Timeline().snapshot().forgotten, 0u);
}

TEST(TraceJson, AJobIsASpanWithItsPartsAndItsOnlyTurn) {
  const std::string text = json_of(job(3));
  EXPECT_THAT(text, HasSubstr(R"("name":"a \"name\"")"));
  EXPECT_THAT(text, HasSubstr(R"("name":"queued")"));
  EXPECT_THAT(text, HasSubstr(R"("name":"running")"));
  EXPECT_THAT(text, HasSubstr(R"("ph":"X","cat":"turn")"));
  EXPECT_THAT(text, HasSubstr(R"("ts":2.500,"dur":1.501)"));  // microseconds
  EXPECT_THAT(text, HasSubstr(R"("session":"0000000000000abc","graph":7,"launch":"3","status":"OK")"));
  EXPECT_THAT(text, Not(HasSubstr("trace_id")));
}

TEST(TraceJson, TurnsOnAGpuHaveAThreadOfTheirOwn) {
  TimelineEvent event = job(3);
  event.gpu = 1;
  const std::string text = json_of(event);
  EXPECT_THAT(text, HasSubstr(R"("tid":4,"ts":0,"args":{"name":"cuda:1"})"));
  EXPECT_THAT(text, HasSubstr(R"("tid":4,"ts":2.500,"dur":1.501)"));
  EXPECT_THAT(json_of(job(3)), Not(HasSubstr("cuda")));
}

TEST(TraceJson, AJobThatNeverHadATurnDidNotRun) {
  TimelineEvent event = job(3);
  event.begin = 0;
  event.turns = 0;
  event.code = Code::cancelled;
  const std::string text = json_of(event);
  EXPECT_THAT(text, HasSubstr("CANCELLED"));
  EXPECT_THAT(text, Not(HasSubstr("running")));
  EXPECT_THAT(text, Not(HasSubstr(R"("ph":"X")")));
}

TEST(TraceJson, SpansSayWhichTraceTheyBelongTo) {
  TimelineEvent event = job(3);
  event.ids.trace = *trace_context("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  EXPECT_THAT(json_of(event),
              HasSubstr(R"("trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7")"));
}

}  // namespace
}  // namespace eagle::server

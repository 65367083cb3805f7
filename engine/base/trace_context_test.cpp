#include "engine/base/trace_context.h"

#include <gtest/gtest.h>

#include <string>

namespace eagle {
namespace {

// The example of the standard (https://www.w3.org/TR/trace-context/).
const std::string example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContext, ReadsAndWritesATraceparent) {
  const auto context = trace_context(example);
  ASSERT_TRUE(context);
  EXPECT_TRUE(context->given());
  EXPECT_EQ(context->trace_text(), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(context->span_text(), "00f067aa0ba902b7");
  EXPECT_EQ(context->flags, 1);
  EXPECT_EQ(context->text(), example);
  EXPECT_EQ(TraceContext().text(), "");
  EXPECT_FALSE(TraceContext().given());
}

TEST(TraceContext, LeavesOutWhatALaterVersionAdds) {
  const auto later = trace_context("cc" + example.substr(2) + "-more");
  ASSERT_TRUE(later);
  EXPECT_EQ(later->text(), example);
  EXPECT_TRUE(trace_context("cc" + example.substr(2)));
  EXPECT_FALSE(trace_context("cc" + example.substr(2) + "more"));
}

TEST(TraceContext, IgnoresWhatIsNone) {
  for (const std::string& text :
       {std::string(), std::string("00"), example.substr(0, 54), example + "-more", "ff" + example.substr(2),
        std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"),
        std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01"),
        std::string("00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), std::string(55, '-')}) {
    EXPECT_FALSE(trace_context(text)) << text;
  }
}

}  // namespace
}  // namespace eagle

#include "proto/rpc_error.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "eagle/v1/error.pb.h"

namespace eagle::rpc {
namespace {

std::size_t percent_encoded(const std::string& text) {
  std::size_t bytes = 0;
  for (const char c : text) bytes += c >= 0x20 && c <= 0x7e && c != '%' ? 1 : 3;
  return bytes;
}

std::string repeat(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(WireMessage, ShortTextIsUnchanged) {
  EXPECT_EQ(wire_message(""), "");
  EXPECT_EQ(wire_message("100% of \xc3\xa9t\xc3\xa9\nover"), "100% of \xc3\xa9t\xc3\xa9\nover");
}

TEST(WireMessage, LongAsciiIsCutAtTheLimit) {
  EXPECT_EQ(wire_message(std::string(4096, 'a')), std::string(4096, 'a'));
  EXPECT_EQ(wire_message(std::string(4097, 'a')), std::string(4093, 'a') + "...");
}

TEST(WireMessage, EncodedSizeCountsNotBytes) {
  for (const std::string_view piece : {"\xc3\xa9", "\xf0\x9f\xa6\x85", "%", "\n", "a\xe2\x82\xac"}) {
    const std::string text = repeat(piece, 5000);
    const std::string cut = wire_message(text);
    EXPECT_LE(percent_encoded(cut), max_encoded_message_bytes);
    EXPECT_GT(percent_encoded(cut), max_encoded_message_bytes - 20);
    ASSERT_TRUE(cut.ends_with("..."));
    const std::size_t kept = cut.size() - 3;
    EXPECT_EQ(cut.substr(0, kept), text.substr(0, kept));
    EXPECT_NE(text[kept] & 0xc0, 0x80) << "a character was cut in two";
  }
}

TEST(WireMessage, MalformedUtf8IsReplaced) {
  EXPECT_EQ(wire_message("a\xff"
                         "b"),
            "a?b");
  EXPECT_EQ(wire_message("\xc3"), "?");                 // cut short
  EXPECT_EQ(wire_message("\xc0\xaf"), "??");            // overlong
  EXPECT_EQ(wire_message("\xe0\x80\x80"), "???");       // overlong
  EXPECT_EQ(wire_message("\xed\xa0\x80"), "???");       // a surrogate
  EXPECT_EQ(wire_message("\xf4\x90\x80\x80"), "????");  // over U+10FFFF
}

TEST(ErrorDetails, HaveTheCodeTheMessageAndTheReason) {
  v1::StatusDetails details;
  ASSERT_TRUE(details.ParseFromString(error_details(Status(Reason::busy, "graph 7 runs\xff"))));
  EXPECT_EQ(details.code(), static_cast<int>(code_of(Reason::busy)));
  EXPECT_EQ(details.message(), "graph 7 runs?");
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  v1::ErrorInfo error;
  ASSERT_TRUE(error.ParseFromString(details.details(0).value()));
  EXPECT_EQ(error.reason(), info(Reason::busy).wire_name);
  EXPECT_EQ(error.domain(), "eagled");
}

TEST(ErrorDetails, AreLeftOutWhereTheTrailersHaveNoRoom) {
  const auto bytes = [](std::string_view piece, int times) {
    const std::string message = repeat(piece, times);
    const std::string details = error_details(Status(Reason::busy, message));
    const std::size_t in_base64 = (details.size() + 2) / 3 * 4;
    return std::pair(details.empty(), percent_encoded(wire_message(message)) + in_base64);
  };
  for (const std::string_view piece : {"a", "%", "\xf0\x9f\xa6\x85"}) {
    for (const int times : {1, 200, 1000, 2000, 2700, 3000, 5000}) {
      const auto [empty, together] = bytes(piece, times);
      EXPECT_LE(together, 7000u) << piece << " " << times;
      if (times <= 200) {
        EXPECT_FALSE(empty) << piece << " " << times;
      }
    }
  }
  EXPECT_TRUE(bytes("a", 5000).first);
}

TEST(StatusOf, OkStaysOk) {
  const grpc::ClientContext context;
  EXPECT_TRUE(status_of(grpc::Status::OK, context).ok());
}

TEST(StatusOf, WithoutReasonTheCodeDecides) {
  const grpc::ClientContext context;
  const auto reason = [&](grpc::StatusCode code) { return status_of({code, "m"}, context).reason(); };
  EXPECT_EQ(reason(grpc::StatusCode::UNAVAILABLE), Reason::connection_lost);
  EXPECT_EQ(reason(grpc::StatusCode::DEADLINE_EXCEEDED), Reason::deadline);
  EXPECT_EQ(reason(grpc::StatusCode::CANCELLED), Reason::cancelled);
  EXPECT_EQ(reason(grpc::StatusCode::UNIMPLEMENTED), Reason::internal);
  EXPECT_EQ(status_of({grpc::StatusCode::UNAVAILABLE, "gone"}, context).message(), "gone");
}

// As gRPC words them when it refuses by itself.
TEST(StatusOf, WhatGrpcRefusesForWantOfMemoryNamesTheCure) {
  const grpc::ClientContext context;
  const Status reset =
      status_of({grpc::StatusCode::RESOURCE_EXHAUSTED, "Received RST_STREAM with error code 11"}, context);
  EXPECT_EQ(reset.reason(), Reason::quota);
  EXPECT_NE(reset.message().find("try again soon"), std::string::npos) << reset.to_string();
  EXPECT_NE(reset.message().find("error code 11"), std::string::npos) << reset.to_string();
  const Status large = status_of(
      {grpc::StatusCode::RESOURCE_EXHAUSTED, "Received message larger than max (9 vs. 8)"}, context);
  EXPECT_EQ(large.reason(), Reason::quota);
  EXPECT_NE(large.message().find("message_bytes"), std::string::npos) << large.to_string();
}

}  // namespace
}  // namespace eagle::rpc

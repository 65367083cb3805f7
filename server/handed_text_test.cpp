#include "server/handed_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace eagle::server {
namespace {

TEST(HandedText, ArrivesAndCanBeReadAgain) {
  for (const std::string& text : {std::string(), std::string("threads = 1\n"), std::string(1u << 20, 'x')}) {
    const auto fd = hand_over(text, "test");
    ASSERT_TRUE(fd.ok()) << fd.status().to_string();
    for (int i = 0; i < 2; ++i) {
      const auto found = handed(fd->get(), 1u << 20);
      ASSERT_TRUE(found.ok()) << found.status().to_string();
      EXPECT_EQ(*found, text);
    }
  }
}

TEST(HandedText, NobodyChangesIt) {
  const auto fd = hand_over("threads = 1\n", "test");
  ASSERT_TRUE(fd.ok());
  EXPECT_LT(::write(fd->get(), "x", 1), 0);
  EXPECT_NE(::ftruncate(fd->get(), 0), 0);
}

TEST(HandedText, TooMuchOrNoDescriptorIsRefused) {
  const auto fd = hand_over("twelve bytes", "test");
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(handed(fd->get(), 11).status().reason(), Reason::bad_message);
  EXPECT_EQ(handed(-1, 11).status().reason(), Reason::system);
}

}  // namespace
}  // namespace eagle::server

#include "server/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "server/testing_client.h"

namespace eagle::server {
namespace {

using server::testing::TemporaryDirectory;
using ::testing::HasSubstr;
using ::testing::Not;

class TokenFile : public ::testing::Test {
protected:
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "tokens";
};

TEST_F(TokenFile, KnowsTheSubjectOfEveryTokenThatWasMadeForIt) {
  const Tokens::Made alice = *Tokens::make("alice");
  const Tokens::Made bob = *Tokens::make("bob@example.org");
  EXPECT_NE(alice.token, Tokens::make("alice")->token);
  write("# two of them\n\n" + alice.line + "\r\n" + bob.line + "\n");
  const auto tokens = Tokens::load(path_);
  ASSERT_TRUE(tokens.ok()) << tokens.status().to_string();
  EXPECT_EQ((*tokens)->subject_of(alice.token), "alice");
  EXPECT_EQ((*tokens)->subject_of(bob.token), "bob@example.org");
  EXPECT_THAT(alice.line, Not(HasSubstr(alice.token)));
}

TEST_F(TokenFile, NothingElseIsAToken) {
  const Tokens::Made alice = *Tokens::make("alice");
  write(alice.line + "\n");
  const auto tokens = *Tokens::load(path_);
  std::string changed = alice.token;
  changed.back() = changed.back() == '0' ? '1' : '0';
  for (const std::string& wrong :
       {std::string(), changed, alice.token + "0", alice.token.substr(1), alice.line.substr(7, 64),
        std::string("alice"), std::string(1 << 20, 'a')}) {
    EXPECT_EQ(tokens->subject_of(wrong), std::nullopt) << wrong.substr(0, 80);
  }
}

// A token that somebody chose and hashed by hand could be guessed.
TEST_F(TokenFile, AShortTokenIsNobodys) {
  const std::string chosen = "swordfish";
  const Digest digest = digest_of({reinterpret_cast<const std::uint8_t*>(chosen.data()), chosen.size()});
  write("sha256:" + to_hex(digest) + " alice\n");
  EXPECT_EQ((*Tokens::load(path_))->subject_of(chosen), std::nullopt);
}

TEST_F(TokenFile, ABadLineIsNamedByItsNumberAndNotShown) {
  const std::string good = Tokens::make("alice")->line;
  for (const std::string& bad : {std::string("3b5d a pasted token"), good + " more", good.substr(0, 60),
                                 "sha256:" + std::string(64, 'X') + " a", good.substr(0, 71),
                                 good.substr(0, 71) + " ", good.substr(0, 71) + " a\"b"}) {
    write("# first\n" + bad + "\n");
    const Status status = Tokens::load(path_).status();
    EXPECT_EQ(status.reason(), Reason::bad_value) << bad;
    EXPECT_THAT(status.message(), HasSubstr("line 2"));
    EXPECT_THAT(status.message(), Not(HasSubstr("pasted")));
  }
}

TEST_F(TokenFile, OthersTakeThePlaceOfThoseThatAreThere) {
  const Tokens::Made alice = *Tokens::make("alice");
  const Tokens::Made bob = *Tokens::make("bob");
  write(alice.line + "\n");
  const auto tokens = *Tokens::load(path_);
  write(bob.line + "\n");
  tokens->replace_by(**Tokens::load(path_));
  EXPECT_EQ(tokens->subject_of(alice.token), std::nullopt);
  EXPECT_EQ(tokens->subject_of(bob.token), "bob");
}

TEST_F(TokenFile, OneThatOthersCanWriteToIsRefused) {
  write(Tokens::make("alice")->line + "\n");
  ASSERT_EQ(::chmod(path_.c_str(), 0620), 0);
  EXPECT_EQ(Tokens::load(path_).status().reason(), Reason::permission_denied);
  EXPECT_EQ(Tokens::load(directory_ / "none").status().reason(), Reason::system);
  EXPECT_EQ(Tokens::load("/").status().reason(), Reason::bad_value);
}

TEST(Token, SubjectsAreWords) {
  for (const char* subject : {"", "two words", "new\nline", "\"quoted\"", "umläut"}) {
    EXPECT_EQ(Tokens::make(subject).status().reason(), Reason::bad_value) << subject;
  }
}

}  // namespace
}  // namespace eagle::server

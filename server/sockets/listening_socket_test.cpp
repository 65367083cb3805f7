#include "server/sockets/listening_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "server/testing_client.h"

namespace eagle::server {
namespace {

using server::testing::TemporaryDirectory;
using ::testing::HasSubstr;

ListeningSocket open(const std::string& path) {
  auto socket = ListeningSocket::open(path);
  EXPECT_TRUE(socket.ok()) << socket.status().to_string();
  return *std::move(socket);
}

TEST(UnixPath, IsWhatFollowsTheScheme) {
  EXPECT_EQ(*unix_path("unix:/run/eagled/eagled.sock"), "/run/eagled/eagled.sock");
  EXPECT_EQ(*unix_path("unix:here"), "here");
}

TEST(UnixPath, OtherSchemesAreRefusedByName) {
  for (const std::string endpoint : {"dns:host:7411", "/run/eagled.sock", "tcp:1.2.3.4:5", "", "unix:"}) {
    const Status status = unix_path(endpoint).status();
    EXPECT_EQ(status.reason(), Reason::bad_endpoint) << endpoint;
    EXPECT_THAT(status.message(), HasSubstr("unix:")) << endpoint;
  }
  EXPECT_THAT(unix_path("dns:host:7411").status().message(), HasSubstr("dns:host:7411"));
}

TEST(UnixPath, OneHundredAndSevenBytesFit) {
  EXPECT_TRUE(unix_path("unix:" + std::string(107, 'p')).ok());
  const Status status = unix_path("unix:" + std::string(108, 'p')).status();
  EXPECT_EQ(status.reason(), Reason::bad_endpoint);
  EXPECT_THAT(status.message(), HasSubstr("107"));
  EXPECT_THAT(status.message(), HasSubstr("108"));
}

TEST(ListeningSocket, IsForOwnerAndGroupOnlyAndGoesWithItsOwner) {
  const TemporaryDirectory directory;
  const std::string path = directory / "s";
  {
    const ListeningSocket socket = open(path);
    struct stat file {};
    ASSERT_EQ(::stat(path.c_str(), &file), 0);
    EXPECT_EQ(
        file.st_mode & 0777u, 0660u & ~[] {
          const mode_t mask = ::umask(0);
          ::umask(mask);
          return mask;
        }());
    const UniqueFd connected = server::testing::connect_to(path);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ListeningSocket, AStaleFileIsReplaced) {
  const TemporaryDirectory directory;
  const std::string path = directory / "s";
  {
    // As a daemon that was killed leaves it: the file stays, nobody listens.
    const ListeningSocket killed = open(path);
    ASSERT_EQ(::rename(path.c_str(), (path + ".kept").c_str()), 0);
  }
  ASSERT_EQ(::rename((path + ".kept").c_str(), path.c_str()), 0);
  const ListeningSocket socket = open(path);
  const UniqueFd connected = server::testing::connect_to(path);
}

TEST(ListeningSocket, ALiveDaemonIsLeftAlone) {
  const TemporaryDirectory directory;
  const std::string path = directory / "s";
  const ListeningSocket first = open(path);
  const Status status = ListeningSocket::open(path).status();
  EXPECT_EQ(status.reason(), Reason::bad_endpoint);
  EXPECT_THAT(status.message(), HasSubstr("another daemon answers"));
  const UniqueFd connected = server::testing::connect_to(path);
}

TEST(ListeningSocket, AFileThatIsNoSocketIsLeftAlone) {
  const TemporaryDirectory directory;
  const std::string path = directory / "s";
  std::ofstream(path) << "precious";
  EXPECT_EQ(ListeningSocket::open(path).status().reason(), Reason::bad_endpoint);
  EXPECT_EQ(std::filesystem::file_size(path), 8u);
}

TEST(ListeningSocket, ASuccessorsFileIsLeftAlone) {
  const TemporaryDirectory directory;
  const std::string path = directory / "s";
  std::optional<ListeningSocket> first = open(path);
  std::filesystem::remove(path);
  const ListeningSocket second = open(path);
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(ListeningSocket, ADirectoryThatIsNotThereIsAnError) {
  const Status refused = ListeningSocket::open("/nowhere/at/all/s").status();
  EXPECT_EQ(refused.reason(), Reason::system);
  EXPECT_NE(refused.message().find("'/nowhere/at/all/s'"), std::string::npos) << refused.message();
  EXPECT_NE(refused.message().find("make its folder first"), std::string::npos) << refused.message();
}

}  // namespace
}  // namespace eagle::server

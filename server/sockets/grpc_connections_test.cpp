#include "server/sockets/grpc_connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <utility>
#include <vector>

namespace eagle::server {
namespace {

// Both ends of a connection of this process with itself.
std::pair<UniqueFd, UniqueFd> connection() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

class GrpcConnectionsTest : public ::testing::Test {
protected:
  // How many of this process are admitted, of at most 20.
  std::size_t admitted(const Limits& limits) {
    GrpcConnections connections(io_, limits);
    std::size_t count = 0;
    while (count < 20) {
      ends_.push_back(connection());
      if (!connections.admit(ends_.back().first.get())) break;
      ++count;
    }
    return count;
  }
  boost::asio::io_context io_;
  std::vector<std::pair<UniqueFd, UniqueFd>> ends_;
};

TEST_F(GrpcConnectionsTest, AreBoundedByUserWhoMayHaveManyProcesses) {
  Limits limits;
  limits.grpc_connections_per_user = 3;
  limits.grpc_connections_per_process = 5;
  EXPECT_EQ(admitted(limits), 3u);
}

TEST_F(GrpcConnectionsTest, AreBoundedByProcess) {
  Limits limits;
  limits.grpc_connections_per_user = 5;
  limits.grpc_connections_per_process = 3;
  EXPECT_EQ(admitted(limits), 3u);
}

TEST_F(GrpcConnectionsTest, AnEndedOneMakesRoomForItsUser) {
  Limits limits;
  limits.grpc_connections_per_user = 1;
  GrpcConnections connections(io_, limits);
  auto first = connection();
  const auto second = connection();
  ASSERT_TRUE(connections.admit(first.first.get()));
  ASSERT_FALSE(connections.admit(second.first.get()));
  first = {};
  io_.run_one();
  EXPECT_TRUE(connections.admit(second.first.get()));
}

}  // namespace
}  // namespace eagle::server

// Connection: one accepted connection. Its first byte tells what it is: a side connection, which is served
// here, or gRPC, which is handed over with nothing read.
#pragma once

#include <memory>

#include "engine/base/unique_fd.h"
#include "server/access.h"
#include "server/daemon.h"

namespace boost::asio {
class io_context;
}

namespace eagle::server {

// All calls from, and all methods on, the thread that runs the io_context.
class Connection {
public:
  class Owner {
  public:
    virtual void hand_to_grpc(UniqueFd fd) = 0;
    virtual void greeted(const Connection& connection) = 0;  // it has a session, and may stay
    // It may go; once, the last call. The connection may still be held by what waits for its socket.
    virtual void closed(const Connection& connection) = 0;

  protected:
    ~Owner() = default;
  };

  virtual ~Connection() = default;
  virtual void start() = 0;
  // Ends its session, if it has one. It calls `closed` at once, or when the client's process has ended,
  // if that still has planes mapped.
  virtual void close() = 0;
  // Now and then: closes it once its session has ended, or goes on over another connection.
  virtual void look() = 0;

  // `fd`: connected, non-blocking. Null, and it is closed, where the system refuses to watch it
  // (fs.epoll.max_user_watches).
  static std::shared_ptr<Connection> make(boost::asio::io_context& io, UniqueFd fd, Daemon& daemon,
                                          const Access& access, Owner& owner);
};

}  // namespace eagle::server

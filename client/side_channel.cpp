#include "client/side_channel.h"

#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "client/protocol.h"
#include "eagle/v1/service.pb.h"
#include "engine/base/descriptors.h"
#include "engine/run/report_message.h"

namespace eagle {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Socket = asio::local::stream_protocol::socket;

constexpr std::string_view side_magic = "EAGLESC1";
constexpr std::size_t max_frame_bytes = 1u << 20;
constexpr std::size_t max_descriptors = 253;  // of one message: the kernel's SCM_MAX_FD
// How often a full backlog is tried again: the kernel has no event for "there is room now".
constexpr std::chrono::milliseconds backlog_retry{5};

// A socket and the loop that runs its operations, one at a time and each with a deadline.
struct SideConnection {
  asio::io_context io{1};
  Socket socket{io};

  // Starts an operation with `start(handler)` and runs it to its end; timed_out when the deadline comes
  // first.
  template <typename Start>
  error_code run(Deadline deadline, const Start& start) {
    error_code result = asio::error::timed_out;
    bool done = false;
    start([&](const error_code& error, auto&&...) {
      result = error;
      done = true;
    });
    io.restart();
    io.run_until(deadline);
    if (done) return result;
    error_code ignored;
    socket.cancel(ignored);
    io.restart();
    io.run();
    return asio::error::timed_out;
  }

  error_code wait(Deadline deadline, Socket::wait_type what) {
    return run(deadline, [&](auto handler) { socket.async_wait(what, std::move(handler)); });
  }

  error_code write(Deadline deadline, std::string_view bytes) {
    return run(deadline,
               [&](auto handler) { asio::async_write(socket, asio::buffer(bytes), std::move(handler)); });
  }
};

Status connect_error(const Endpoint& endpoint, int error) {
  if (error == ETIMEDOUT) {
    return {Reason::deadline, "nobody accepts connections at " + endpoint.text() +
                                  ", though something listens there; is the daemon stopped or overloaded?"};
  }
  if (error == EACCES) {
    return {Reason::permission_denied,
            "this user may not connect to " + endpoint.text() +
                "; join the group that owns the socket, or start a daemon of your own"};
  }
  return {Reason::no_daemon, "no daemon answers at " + endpoint.text() + " (" + std::strerror(error) +
                                 "); start one with `eagled --listen " + endpoint.text() +
                                 "`, or call connect() without an endpoint"};
}

// By hand, because Asio takes the EAGAIN of a full backlog for a connection in progress. Nothing else of a
// unix socket's connect waits.
Status connect_socket(SideConnection& connection, const Endpoint& endpoint, Deadline deadline) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return {Reason::system, std::string("socket: ") + std::strerror(errno)};
  connection.socket.assign(asio::local::stream_protocol(), fd);
  const asio::local::stream_protocol::endpoint address(endpoint.path);
  asio::steady_timer timer(connection.io);
  while (::connect(fd, address.data(), static_cast<socklen_t>(address.size())) != 0) {
    if (errno != EAGAIN && errno != EINTR) return connect_error(endpoint, errno);
    timer.expires_after(backlog_retry);
    if (connection.run(deadline, [&](auto handler) { timer.async_wait(std::move(handler)); })) {
      return connect_error(endpoint, ETIMEDOUT);
    }
  }
  return {};
}

bool is_user_eagled(uid_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  return ::getpwnam_r("eagled", &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr &&
         found->pw_uid == uid;
}

Status check_peer(SideConnection& connection, const Endpoint& endpoint) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(connection.socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return {Reason::system, std::string("getsockopt(SO_PEERCRED): ") + std::strerror(errno)};
  }
  if (peer.uid == 0 || peer.uid == ::geteuid() || is_user_eagled(peer.uid)) return {};
  return {Reason::permission_denied,
          "what listens at " + endpoint.text() + " runs as uid " + std::to_string(peer.uid) +
              ", which is neither root, nor the user eagled, nor you (uid " + std::to_string(::geteuid()) +
              "); nothing was sent to it. Check who made that socket"};
}

Status connect_checked(SideConnection& connection, const Endpoint& endpoint, Deadline deadline) {
  EAGLE_RETURN_IF_ERROR(connect_socket(connection, endpoint, deadline));
  return check_peer(connection, endpoint);
}

}  // namespace

struct SideChannel::State {
  State(Endpoint its_endpoint) : endpoint(std::move(its_endpoint)) {}

  Endpoint endpoint;
  std::mutex mutex;  // one request and its reply at a time
  SideConnection connection;
  OpenedSession session;

  Status broken(std::string_view what) const {
    return {Reason::connection_lost, "the daemon at " + endpoint.text() + " went away " + std::string(what) +
                                         "; open another session once it is back"};
  }
  Status not_eagled(const std::string& found) const {
    return {Reason::bad_message, "what listens at " + endpoint.text() + " does not talk like eagled (" +
                                     found + "); check the endpoint"};
  }
  Status failed(const error_code& error, std::string_view what) const {
    if (error == asio::error::timed_out) {
      return {Reason::deadline,
              "the daemon at " + endpoint.text() + " did not answer in time " + std::string(what) +
                  "; it may be busy, or its worker takes over from one that died: wait longer (timeout)"};
    }
    return broken(what);
  }

  Status send(const v1::SideRequest& request, Deadline deadline, std::string_view before,
              std::string_view what) {
    const std::string body = request.SerializeAsString();
    std::string bytes(before);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(body.size() >> shift));
    bytes += body;
    const error_code error = connection.write(deadline, bytes);
    return error ? failed(error, what) : Status();
  }

  // What a reply brings besides its bytes.
  struct Received {
    std::vector<UniqueFd>& descriptors;
    bool some_lost = false;  // this process had no room for all of them
  };

  // Fills `into`; descriptors may come with any of its bytes.
  Status receive(std::span<char> into, Received& received, Deadline deadline, std::string_view what) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(max_descriptors * sizeof(int))> control{};
    while (!into.empty()) {
      if (const error_code error = connection.wait(deadline, Socket::wait_read)) return failed(error, what);
      iovec part{into.data(), into.size()};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      const ssize_t got =
          ::recvmsg(connection.socket.native_handle(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) return broken(what);
      take_descriptors(message, received.descriptors);
      // The frame is read to its end all the same, so that the next one begins where it should.
      received.some_lost = received.some_lost || (message.msg_flags & MSG_CTRUNC) != 0;
      into = into.subspan(static_cast<std::size_t>(got));
    }
    return {};
  }

  StatusOr<v1::SideReply> reply(Received& received, Deadline deadline, std::string_view what) {
    std::array<char, 4> prefix{};
    EAGLE_RETURN_IF_ERROR(receive(prefix, received, deadline, what));
    std::size_t size = 0;
    for (int i = 0; i < 4; ++i)
      size |= std::size_t(static_cast<unsigned char>(prefix[std::size_t(i)])) << (8 * i);
    if (size > max_frame_bytes) return not_eagled("a frame of " + std::to_string(size) + " bytes");
    std::string body(size, '\0');
    EAGLE_RETURN_IF_ERROR(receive(body, received, deadline, what));
    v1::SideReply message;
    if (!message.ParseFromString(body)) return not_eagled("a frame that is no reply");
    return message;
  }

  void end() { ::shutdown(connection.socket.native_handle(), SHUT_RDWR); }

  // One request and its reply. When one of them stops half-way the two sides disagree about where the next
  // frame starts, so the connection, and with it the session, ends.
  StatusOr<v1::SideReply> exchange(const v1::SideRequest& request, std::string_view before,
                                   std::vector<UniqueFd>& descriptors, Deadline deadline,
                                   std::string_view what) {
    const Status sent = send(request, deadline, before, what);
    Received received{descriptors};
    StatusOr<v1::SideReply> answer = sent.ok() ? reply(received, deadline, what) : sent;
    if (!answer.ok()) {
      end();
      return answer;
    }
    if (received.some_lost) {
      return Status(Reason::out_of_memory,
                    "no room for the descriptors of new arrays: this process has too many open files; "
                    "raise `ulimit -n`, or make fewer large arrays");
    }
    if (answer->has_error()) return Status(reason_named(answer->error().reason()), answer->error().message());
    return answer;
  }

  Status hello(const SessionRequest& asked, Deadline deadline) {
    constexpr std::string_view what = "while the session was being opened";
    v1::SideRequest request;
    v1::HelloRequest& hello = *request.mutable_hello();
    hello.mutable_protocol()->set_min(protocol_min);
    hello.mutable_protocol()->set_max(protocol_max);
    hello.set_client_version(EAGLE_VERSION);
    hello.set_client_name(asked.client_name);
    hello.set_lease_s(static_cast<std::uint32_t>(asked.lease.count()));
    hello.set_attempt(asked.attempt);
    hello.set_token(asked.token);
    hello.set_traceparent(asked.traceparent);
    if (asked.resume) {
      hello.mutable_resume()->set_session(asked.resume->session);
      hello.mutable_resume()->set_secret(asked.resume->secret);
      hello.mutable_resume()->set_last_launch_id(asked.resume->last_launch_id);
    }
    std::vector<UniqueFd> none;
    EAGLE_ASSIGN_OR_RETURN(const v1::SideReply answer, exchange(request, side_magic, none, deadline, what));
    if (!answer.has_hello() || answer.hello().secret().size() != secret_bytes) {
      return not_eagled("an unexpected answer to its greeting");
    }
    const v1::HelloReply& opened = answer.hello();
    if (opened.protocol() < protocol_min || opened.protocol() > protocol_max) {
      return {Reason::protocol_mismatch,
              "the daemon at " + endpoint.text() + " (version " + opened.server_version() +
                  ") chose protocol " + std::to_string(opened.protocol()) +
                  ", and this client (version " EAGLE_VERSION ") speaks " + std::to_string(protocol_min) +
                  " to " + std::to_string(protocol_max) + "; bring both to versions next to each other"};
    }
    session = {opened.session(),
               opened.secret(),
               opened.server_version(),
               run::host_of(opened.host()),
               opened.survives(),
               opened.tells_begun(),
               std::chrono::milliseconds(opened.heartbeat_ms())};
    return {};
  }
};

StatusOr<UniqueFd> connect_to_daemon(const Endpoint& endpoint, Deadline deadline) {
  SideConnection connection;
  EAGLE_RETURN_IF_ERROR(connect_checked(connection, endpoint, deadline));
  return UniqueFd(connection.socket.release());
}

SideChannel::SideChannel(std::unique_ptr<State> state) : state_(std::move(state)) {}
SideChannel::~SideChannel() = default;

const OpenedSession& SideChannel::session() const { return state_->session; }

StatusOr<std::unique_ptr<SideChannel>> SideChannel::open(const Endpoint& endpoint,
                                                         const SessionRequest& request, Deadline deadline) {
  auto state = std::make_unique<State>(endpoint);
  EAGLE_RETURN_IF_ERROR(connect_checked(state->connection, endpoint, deadline));
  EAGLE_RETURN_IF_ERROR(state->hello(request, deadline));
  return std::unique_ptr<SideChannel>(new SideChannel(std::move(state)));
}

StatusOr<std::vector<UniqueFd>> SideChannel::fetch(const std::vector<std::string>& tokens,
                                                   Deadline deadline) {
  constexpr std::string_view what = "while the memory of an array was being handed over";
  const std::scoped_lock lock(state_->mutex);
  v1::SideRequest request;
  for (const std::string& token : tokens) request.mutable_fetch()->add_tokens(token);
  std::vector<UniqueFd> descriptors;
  EAGLE_ASSIGN_OR_RETURN(const v1::SideReply answer,
                         state_->exchange(request, {}, descriptors, deadline, what));
  if (!answer.has_fetch() || descriptors.size() != tokens.size()) {
    state_->end();
    return state_->not_eagled(std::to_string(descriptors.size()) + " descriptors for " +
                              std::to_string(tokens.size()) + " planes");
  }
  return descriptors;
}

StatusOr<run::cuda::DeviceHandle> SideChannel::fetch_device(const std::string& token, Deadline deadline) {
  constexpr std::string_view what = "while memory of a GPU was being handed over";
  const std::scoped_lock lock(state_->mutex);
  v1::SideRequest request;
  request.mutable_fetch()->add_tokens(token);
  std::vector<UniqueFd> descriptors;
  EAGLE_ASSIGN_OR_RETURN(const v1::SideReply answer,
                         state_->exchange(request, {}, descriptors, deadline, what));
  const bool one = answer.has_fetch() && answer.fetch().devices_size() == 1;
  if (!one || descriptors.size() != (answer.fetch().devices(0).by_descriptor() ? 1u : 0u)) {
    state_->end();
    return state_->not_eagled(std::to_string(descriptors.size()) + " descriptors for memory of a GPU");
  }
  const v1::DeviceHandle& told = answer.fetch().devices(0);
  run::cuda::DeviceHandle handle;
  handle.uuid = told.uuid();
  if (!descriptors.empty()) handle.descriptor = std::move(descriptors.front());
  handle.ipc = told.ipc();
  handle.allocation = told.allocation();
  handle.offset = told.offset();
  handle.bytes = told.bytes();
  return handle;
}

StatusOr<SideChannel::RingDescriptors> SideChannel::ring(Deadline deadline) {
  constexpr std::string_view what = "while the ring of the session was being handed over";
  const std::scoped_lock lock(state_->mutex);
  v1::SideRequest request;
  request.mutable_ring();
  std::vector<UniqueFd> descriptors;
  EAGLE_ASSIGN_OR_RETURN(const v1::SideReply answer,
                         state_->exchange(request, {}, descriptors, deadline, what));
  if (!answer.has_ring() || descriptors.size() != 2) {
    state_->end();
    return state_->not_eagled(std::to_string(descriptors.size()) + " descriptors for a ring");
  }
  return RingDescriptors{std::move(descriptors[0]), std::move(descriptors[1])};
}

Status SideChannel::leave(Deadline deadline) {
  const std::scoped_lock lock(state_->mutex);
  v1::SideRequest request;
  request.mutable_leave();
  std::vector<UniqueFd> none;
  return state_->exchange(request, {}, none, deadline, "while the session was being ended").status();
}

Status SideChannel::beat(Deadline deadline) {
  const std::scoped_lock lock(state_->mutex);
  v1::SideRequest request;
  request.mutable_beat();
  std::vector<UniqueFd> none;
  return state_->exchange(request, {}, none, deadline, "while it was told that this client lives").status();
}

bool SideChannel::alive() const {
  pollfd poll{state_->connection.socket.native_handle(), POLLRDHUP, 0};
  return ::poll(&poll, 1, 0) == 0;
}

void SideChannel::shut_down() { state_->end(); }

}  // namespace eagle

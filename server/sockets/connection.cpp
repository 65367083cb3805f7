#include "server/sockets/connection.h"

#include <linux/sockios.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "engine/base/descriptors.h"
#include "server/sockets/side_protocol.h"

namespace eagle::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// How soon, and how often at least, it is looked whether a client has received its last answer.
constexpr std::chrono::milliseconds first_look{1};
constexpr std::chrono::milliseconds slowest_look{250};

class AsioConnection final : public Connection, public std::enable_shared_from_this<AsioConnection> {
public:
  AsioConnection(asio::io_context& io, UniqueFd fd, Daemon& daemon, const Access& access, Owner& owner)
      : daemon_(daemon),
        owner_(owner),
        socket_(io),
        greeting_timer_(io),
        reading_timer_(io),
        process_(io),
        protocol_(daemon, access, principal_of(fd.get())) {
    error_code error;
    socket_.assign(asio::local::stream_protocol(), fd.get(), error);
    if (!error) static_cast<void>(fd.release());  // the socket's now
  }
  // False: the system watches no more descriptors for this process.
  [[nodiscard]] bool watched() const { return socket_.is_open(); }

  void start() override {
    greeting_timer_.expires_after(daemon_.limits().greeting_timeout);
    greeting_timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->give_up("it said nothing for too long");
    });
    socket_.async_wait(socket_.wait_read, [self = shared_from_this()](error_code error) {
      if (!error && !self->closed_) self->tell_apart();
    });
  }

  void close() override;
  void look() override {
    // At the second look: the client may be reading why.
    if (!closed_ && greeted_ && !protocol_.attached() && std::exchange(left_, true))
      give_up("its session has ended or goes on over another one");
  }

private:
  using Received = void (AsioConnection::*)();

  void tell_apart();
  // Fills `buffer` and goes on.
  template <typename Buffer>
  void receive(Buffer& buffer, Received then);
  void on_magic();
  void read_frame();
  void on_frame_size();
  void on_frame();
  bool answer_was_received();
  void reply(SideAnswer answer, Received then);
  void send();
  void watch_process();
  void expect_more();
  [[nodiscard]] bool client_lives();
  void give_up(const char* why);

  Daemon& daemon_;
  Owner& owner_;
  asio::local::stream_protocol::socket socket_;
  asio::steady_timer greeting_timer_;
  asio::steady_timer reading_timer_;
  std::chrono::milliseconds until_next_look_ = first_look;
  UniqueFd client_;                         // its process, until that is watched
  asio::posix::stream_descriptor process_;  // of the client
  SideProtocol protocol_;
  bool greeted_ = false;
  bool left_ = false;    // the session was not its own any more at the last look
  bool closed_ = false;  // the connection; what had ended before still calls its handler, without an error
  bool gone_ = false;    // this object, for its owner

  std::array<char, side_magic.size()> magic_{};
  std::array<std::uint8_t, 4> frame_size_{};
  std::string frame_;
  SideAnswer answer_;
  std::size_t sent_ = 0;
  Received after_reply_ = nullptr;
};

// Only side connections begin with an 'E': HTTP/2 begins with a 'P', TLS with a control character.
void AsioConnection::tell_apart() {
  char first = 0;
  const ssize_t got = ::recv(socket_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got <= 0) return close();
  if (first == side_magic.front()) return receive(magic_, &AsioConnection::on_magic);
  greeting_timer_.cancel();
  closed_ = true;
  gone_ = true;
  error_code ignored;
  owner_.hand_to_grpc(UniqueFd(socket_.release(ignored)));
  owner_.closed(*this);
}

template <typename Buffer>
void AsioConnection::receive(Buffer& buffer, Received then) {
  asio::async_read(socket_, asio::buffer(buffer),
                   [self = shared_from_this(), then](error_code error, std::size_t) {
                     if (error || self->closed_) return self->close();
                     ((*self).*then)();
                   });
}

void AsioConnection::on_magic() {
  if (std::string_view(magic_.data(), magic_.size()) != side_magic) return give_up("it began with garbage");
  const auto principal = principal_of(socket_.native_handle());
  if (principal.ok()) client_ = process_of(socket_.native_handle(), *principal);
  protocol_.set_process(client_.get());
  read_frame();
}

void AsioConnection::read_frame() { receive(frame_size_, &AsioConnection::on_frame_size); }

void AsioConnection::on_frame_size() {
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < frame_size_.size(); ++i) size |= std::uint32_t{frame_size_[i]} << (8 * i);
  if (size > daemon_.limits().frame_bytes) {
    const std::string limit = std::to_string(daemon_.limits().frame_bytes);
    return reply(protocol_.refuse({Reason::bad_message, "expected a side message of at most " + limit +
                                                            " bytes (frame_bytes), found one of " +
                                                            std::to_string(size)}),
                 &AsioConnection::close);
  }
  frame_.resize(size);
  receive(frame_, &AsioConnection::on_frame);
}

// Descriptors on their way count for the user of this process, and all clients together may exhaust what the
// kernel allows him (ETOOMANYREFS): the next request waits until the last answer has been received.
bool AsioConnection::answer_was_received() {
  int bytes = 0;
  return ::ioctl(socket_.native_handle(), SIOCOUTQ, &bytes) != 0 || bytes == 0;
}

void AsioConnection::on_frame() {
  if (!answer_was_received()) {
    reading_timer_.expires_after(until_next_look_);
    until_next_look_ = std::min(2 * until_next_look_, slowest_look);
    return reading_timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error && !self->closed_) self->on_frame();
    });
  }
  until_next_look_ = first_look;
  expect_more();
  SideAnswer answer = protocol_.handle(frame_);
  if (protocol_.session() && !greeted_) {
    greeted_ = true;
    greeting_timer_.cancel();
    owner_.greeted(*this);
    watch_process();
    if (closed_) return;
    expect_more();
  }
  reply(std::move(answer), &AsioConnection::read_frame);
}

void AsioConnection::reply(SideAnswer answer, Received then) {
  answer_ = std::move(answer);
  sent_ = 0;
  after_reply_ = then;
  send();
}

void AsioConnection::send() {
  while (sent_ < answer_.frame.size()) {
    const std::string_view rest = std::string_view(answer_.frame).substr(sent_);
    const auto descriptors = sent_ == 0 ? std::span<const int>(answer_.descriptors) : std::span<const int>();
    const ssize_t sent = send_with_descriptors(socket_.native_handle(), rest, descriptors, MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return socket_.async_wait(socket_.wait_write, [self = shared_from_this()](error_code error) {
        if (error || self->closed_) return self->close();
        self->send();
      });
    }
    // The kernel bounds the descriptors that a user has in flight, over all of the user's connections.
    if (sent < 0 && errno == ETOOMANYREFS) {
      protocol_.not_sent(answer_);
      return reply(protocol_.refuse({Reason::quota,
                                     "too many descriptors are on their way to this user's processes; "
                                     "fetch again when some have been received"}),
                   after_reply_);
    }
    if (sent < 0) return close();
    if (sent_ == 0) protocol_.sent(answer_);
    sent_ += static_cast<std::size_t>(sent);
  }
  answer_ = {};
  (this->*after_reply_)();
}

// Where the process cannot be watched, its silence counts.
void AsioConnection::expect_more() {
  if (!greeted_ || process_.is_open()) return;
  greeting_timer_.expires_after(daemon_.limits().longest_silence);
  greeting_timer_.async_wait([self = shared_from_this()](error_code error) {
    if (!error) self->give_up("its client says nothing any more");
  });
}

// The end of the connection may be hidden by a forked child that has it too: the process itself counts.
void AsioConnection::watch_process() {
  if (!client_.valid()) return;
  error_code refused;
  process_.assign(client_.get(), refused);
  if (refused) return give_up("the system watches no more processes for this one");
  static_cast<void>(client_.release());
  process_.async_wait(process_.wait_read, [self = shared_from_this()](error_code error) {
    if (error) return;
    error_code ignored;
    self->process_.close(ignored);
    self->close();
  });
}

bool AsioConnection::client_lives() { return process_.is_open() && runs(process_.native_handle()); }

void AsioConnection::close() {
  if (gone_) return;
  error_code ignored;
  if (!closed_) {
    closed_ = true;
    greeting_timer_.cancel();
    socket_.close(ignored);
    if (protocol_.session()) protocol_.detach();
  }
  // The end of the process calls again: what it has mapped is freed then.
  const auto& session = protocol_.session();
  const bool keeps = session && daemon_.sessions().keeps_mapped(session->id());
  if (keeps && client_lives()) return;
  gone_ = true;
  process_.close(ignored);
  if (keeps) daemon_.sessions().free_unmapped();
  owner_.closed(*this);
}

void AsioConnection::give_up(const char* why) {
  if (closed_) return;
  if (const auto more = daemon_.connection_lines().admit())
    spdlog::info("connection closed: {}{}", why, *more);
  close();
}

}  // namespace

std::shared_ptr<Connection> Connection::make(asio::io_context& io, UniqueFd fd, Daemon& daemon,
                                             const Access& access, Owner& owner) {
  auto made = std::make_shared<AsioConnection>(io, std::move(fd), daemon, access, owner);
  return made->watched() ? made : nullptr;
}

}  // namespace eagle::server

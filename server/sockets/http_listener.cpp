#include "server/sockets/http_listener.h"
#include "server/sockets/listening_socket.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <list>
#include <optional>
#include <thread>
#include <utility>

namespace eagle::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::chrono::seconds patience{5};  // for a request's header, and for taking the answer
constexpr std::chrono::seconds idle{75};     // between requests; Prometheus asks each minute or sooner
constexpr std::uint32_t most_header_bytes = 8u << 10;

using Stream = beast::basic_stream<asio::generic::stream_protocol>;
using Response = http::response<http::string_body>;

}  // namespace

class HttpListener::State {
public:
  State(std::string name, std::vector<UniqueFd> listening, Answer answer)
      : name_(std::move(name)), answer_(std::move(answer)) {
    for (UniqueFd& socket : listening) {
      Listening& one = listening_.emplace_back(io_);
      one.socket.assign(socket.release());
      wait(one);
    }
    thread_ = std::jthread([this] { io_.run(); });
  }
  ~State() {
    asio::post(io_, [this] { io_.stop(); });
    thread_.join();
  }

private:
  struct Listening {
    explicit Listening(asio::io_context& io) : socket(io), pause(io) {}
    asio::posix::stream_descriptor socket;
    asio::steady_timer pause;
  };
  // One peer. Its handlers hold it.
  struct Connection {
    explicit Connection(Stream::socket_type socket) : stream(std::move(socket)), buffer(most_header_bytes) {}
    Stream stream;
    beast::flat_buffer buffer;
    std::optional<http::request_parser<http::empty_body>> parser;
    Response response;
    std::array<char, 4096> discarded{};
    std::size_t left = 1u << 20;  // to be discarded at most
  };

  void wait(Listening& one) {
    one.socket.async_wait(one.socket.wait_read, [this, &one](error_code error) {
      if (!error) accept(one);
    });
  }

  void accept(Listening& one) {
    const int fd = ::accept4(one.socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      admit(fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      spdlog::warn("{}: accept: {}; nobody is answered for {} ms", name_, std::strerror(errno),
                   pause_after_failure.count());
      one.pause.expires_after(pause_after_failure);
      one.pause.async_wait([this, &one](error_code error) {
        if (!error) wait(one);
      });
      return;
    }
    wait(one);
  }

  void admit(int fd) {
    if (connections_.size() >= most_connections) {
      if (const auto oldest = connections_.front().lock()) close(*oldest);
      connections_.pop_front();
    }
    Stream::socket_type socket(io_, {AF_INET, 0}, fd);
    std::shared_ptr<Connection> connection(new Connection(std::move(socket)), [this](Connection* gone) {
      connections_.remove_if([](const auto& one) { return one.expired(); });
      delete gone;
    });
    connections_.push_back(connection);
    read(connection, patience);
  }

  void read(const std::shared_ptr<Connection>& connection, std::chrono::seconds time) {
    connection->parser.emplace();
    connection->parser->header_limit(most_header_bytes);
    connection->parser->body_limit(0);
    connection->stream.expires_after(time);
    http::async_read(connection->stream, connection->buffer, *connection->parser,
                     [this, connection](error_code error, std::size_t) { answer(connection, error); });
  }

  void answer(const std::shared_ptr<Connection>& connection, error_code error) {
    if (error == http::error::end_of_stream || error == beast::error::timeout ||
        error == asio::error::operation_aborted) {
      return close(*connection);
    }
    // A parser's complaint is answered; a broken connection has nobody to answer.
    if (error && error.category() != make_error_code(http::error::bad_method).category())
      return close(*connection);
    connection->response =
        error ? refusal(http::status::bad_request, "expected GET over HTTP/1.1") : response_to(*connection);
    if (error) connection->response.keep_alive(false);
    connection->stream.expires_after(patience);
    http::async_write(connection->stream, connection->response,
                      [this, connection](error_code failed, std::size_t) {
                        if (failed) return close(*connection);
                        connection->response.keep_alive() ? read(connection, idle) : hang_up(connection);
                      });
  }

  // What the peer has sent and nobody reads would, at a close, take the answer along.
  void hang_up(const std::shared_ptr<Connection>& connection) {
    error_code ignored;
    connection->stream.socket().shutdown(asio::socket_base::shutdown_send, ignored);
    connection->stream.expires_after(patience);
    discard(connection);
  }
  void discard(const std::shared_ptr<Connection>& connection) {
    connection->stream.async_read_some(asio::buffer(connection->discarded),
                                       [this, connection](error_code error, std::size_t bytes) {
                                         connection->left -= std::min(connection->left, bytes);
                                         if (error || connection->left == 0) return close(*connection);
                                         discard(connection);
                                       });
  }

  Response response_to(Connection& connection) {
    const http::request<http::empty_body>& request = connection.parser->get();
    Response response;
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      response = refusal(http::status::method_not_allowed, "expected GET");
      response.set(http::field::allow, "GET, HEAD");
    } else if (request.count(http::field::host) > 1) {
      response = refusal(http::status::bad_request, "expected one Host field, found several");
    } else {
      HttpAnswer answer = answer_(asked(request, connection.stream.socket().native_handle()));
      response.result(answer.status);
      response.set(http::field::content_type, answer.content_type);
      for (const auto& [name, value] : answer.fields) response.set(name, value);
      response.body() = std::move(answer.body);
    }
    response.version(request.version());
    response.keep_alive(request.keep_alive());
    response.prepare_payload();
    if (request.method() == http::verb::head) response.body().clear();
    return response;
  }

  static HttpRequest asked(const http::request<http::empty_body>& request, int socket) {
    const auto field = [&](auto name) {
      const auto value = request[name];
      return std::string(value.data(), value.size());
    };
    return {{request.target().data(), request.target().size()},
            field(http::field::host),
            field(http::field::authorization),
            field("Sec-Fetch-Site"),
            socket};
  }

  static Response refusal(http::status status, const char* why) {
    Response response(status, 11);
    response.set(http::field::content_type, "text/plain; charset=utf-8");
    response.body() = std::string(why) + "\n";
    response.prepare_payload();
    return response;
  }

  static void close(Connection& connection) {
    error_code ignored;
    connection.stream.socket().shutdown(asio::socket_base::shutdown_both, ignored);
    connection.stream.close();
  }

  const std::string name_;
  const Answer answer_;
  std::list<std::weak_ptr<Connection>> connections_;  // the oldest first; outlives the handlers in io_
  asio::io_context io_;
  std::deque<Listening> listening_;
  std::jthread thread_;
};

HttpListener::HttpListener(std::string name, std::vector<UniqueFd> listening, Answer answer)
    : state_(std::make_unique<State>(std::move(name), std::move(listening), std::move(answer))) {}

HttpListener::~HttpListener() = default;

}  // namespace eagle::server

#include "client/examples/service/metrics_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <utility>

namespace example {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::chrono::seconds patience{5};
constexpr std::uint32_t most_header_bytes = 8u << 10;

// One request of one peer, which then hangs up. Its handlers hold it.
class Peer : public std::enable_shared_from_this<Peer> {
public:
  Peer(asio::ip::tcp::socket socket, const MetricsServer::Answers& answers)
      : stream_(std::move(socket)), buffer_(most_header_bytes), answers_(answers) {
    parser_.header_limit(most_header_bytes);
    parser_.body_limit(0);
  }

  void serve() {
    stream_.expires_after(patience);
    http::async_read(stream_, buffer_, parser_, [self = shared_from_this()](error_code error, std::size_t) {
      if (!error) self->answer();
    });
  }

private:
  void answer() {
    const auto& request = parser_.get();
    const std::string target(request.target().data(), request.target().size());
    response_.result(http::status::ok);
    response_.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    if (request.method() != http::verb::get) {
      response_.result(http::status::method_not_allowed);
      response_.set(http::field::allow, "GET");
    } else if (target == "/metrics") {
      response_.body() = answers_.metrics();
    } else if (target == "/healthz") {
      const bool healthy = answers_.healthy();
      response_.result(healthy ? http::status::ok : http::status::service_unavailable);
      response_.body() = healthy ? "serving\n" : "not serving\n";
    } else {
      response_.result(http::status::not_found);
    }
    response_.keep_alive(false);
    response_.prepare_payload();
    stream_.expires_after(patience);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code, std::size_t) {
      error_code ignored;
      self->stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  const MetricsServer::Answers& answers_;  // of the server, which outlives what `io` runs
};

}  // namespace

class MetricsServer::State {
public:
  State(asio::io_context& io, std::uint16_t port, Answers answers)
      : answers_(std::move(answers)), acceptor_(io, {asio::ip::address_v4::loopback(), port}) {
    accept();
  }
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void close() {
    error_code ignored;
    acceptor_.close(ignored);
  }

private:
  void accept() {
    acceptor_.async_accept([this](error_code error, asio::ip::tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (!error) std::make_shared<Peer>(std::move(socket), answers_)->serve();
      accept();
    });
  }

  Answers answers_;
  asio::ip::tcp::acceptor acceptor_;
};

MetricsServer::MetricsServer(asio::io_context& io, std::uint16_t port, Answers answers)
    : state_(std::make_shared<State>(io, port, std::move(answers))) {}
MetricsServer::~MetricsServer() = default;
std::uint16_t MetricsServer::port() const { return state_->port(); }
void MetricsServer::close() { state_->close(); }

}  // namespace example

// HttpListener: answers GET and HEAD over HTTP/1.1, for metrics and for the dashboard.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/unique_fd.h"

namespace eagle::server {

struct HttpRequest {
  std::string target;  // path and query, as they came
  std::string host;    // fields of these names; empty: it had none
  std::string authorization;
  std::string sec_fetch_site;
  int socket = -1;  // borrowed, for who is at its other end
};

struct HttpAnswer {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields = {};  // more of them
};

// Owns one thread, on which `answer` is called. A peer gets a few seconds for each request and each answer,
// and may go on asking; there are at most `most_connections`, and who comes above that makes room of the
// oldest. Requests have no body and small headers; what is no such request is answered so and hung up on.
class HttpListener {
public:
  static constexpr std::size_t most_connections = 16;
  using Answer = std::function<HttpAnswer(const HttpRequest&)>;

  // `listening`: non-blocking sockets. `name`: what this is, for the log.
  HttpListener(std::string name, std::vector<UniqueFd> listening, Answer answer);
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace eagle::server

// An example service: see README.md of this folder.
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "client/examples/service/metrics_server.h"
#include "client/examples/service/service.h"

namespace {

constexpr const char* usage =
    "usage: eagle_example_service GRAPH_FILE [--endpoint E] [--period-ms N] [--deadline-ms N]\n"
    "         [--open PLANE=NAME]... [--publish PREFIX] [--metrics-port N]\n";

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

struct Options {
  example::ServiceOptions service;
  std::uint16_t port = 0;
};

// False: the command line is not understood.
bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--")) {
      if (!options.service.graph.empty()) return false;
      options.service.graph = word;
      continue;
    }
    if (++i == argc) return false;
    const std::string_view value = argv[i];
    std::uint32_t number = 0;
    if (word == "--endpoint") {
      options.service.endpoint = value;
    } else if (word == "--publish") {
      options.service.publish = value;
    } else if (word == "--open") {
      const auto equals = value.find('=');
      if (equals == std::string_view::npos) return false;
      options.service.open.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    } else if (word == "--metrics-port") {
      if (!read_number(value, options.port)) return false;
    } else if (!read_number(value, number) || number == 0) {
      return false;
    } else if (word == "--period-ms") {
      options.service.period = std::chrono::milliseconds(number);
    } else if (word == "--deadline-ms") {
      options.service.deadline = std::chrono::milliseconds(number);
    } else {
      return false;
    }
  }
  return !options.service.graph.empty();
}

int serve(Options options) {
  boost::asio::io_context io;
  example::Metrics metrics;
  auto service = example::Service::create(io, std::move(options.service), metrics);
  if (!service.ok()) {
    std::fprintf(stderr, "%s\n", service.status().to_string().c_str());
    return 1;
  }
  example::MetricsServer server(
      io, options.port, {[&metrics] { return metrics.text(); }, [&metrics] { return metrics.is_serving(); }});
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](boost::system::error_code error, int) {
    if (error) return;
    (*service)->stop();
    server.close();
  });
  std::printf("metrics at http://127.0.0.1:%u/metrics\n", server.port());
  std::fflush(stdout);
  (*service)->start();
  io.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) {
    std::fputs(usage, stderr);
    return 2;
  }
  try {
    return serve(std::move(options));
  } catch (const std::exception& error) {  // a port that is taken
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

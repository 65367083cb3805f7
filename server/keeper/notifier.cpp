#include "server/keeper/notifier.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>

namespace eagle::server {
namespace {

std::string taken(const char* name) {
  const char* const value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// A path, or with @ a name of the abstract kind.
UniqueFd connected_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) {
    spdlog::warn("NOTIFY_SOCKET: expected a path or an abstract name, found '{}'; nobody is notified", path);
    return UniqueFd();
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    spdlog::warn("NOTIFY_SOCKET '{}': {}; nobody is notified", path, std::strerror(errno));
    return UniqueFd();
  }
  return socket;
}

}  // namespace

void Notifier::take_from_environment() {
  path_ = taken("NOTIFY_SOCKET");
  const std::string pid = taken("WATCHDOG_PID");
  const auto interval = number(taken("WATCHDOG_USEC"));
  socket_.reset();
  watchdog_ = {};
  if (path_.empty()) return;
  socket_ = connected_to(path_);
  if (interval && *interval > 0 && (pid.empty() || number(pid) == ::getpid())) {
    watchdog_ = std::chrono::microseconds(*interval);
  }
}

void Notifier::leave_to_environment() const {
  if (path_.empty()) return;
  ::setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  if (watchdog_.count() > 0) ::setenv("WATCHDOG_USEC", std::to_string(watchdog_.count()).c_str(), 1);
}

void Notifier::reloading() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  send("RELOADING=1\nMONOTONIC_USEC=" +
       std::to_string(std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000));
}

void Notifier::goes_round(std::chrono::steady_clock::time_point now) {
  if (watchdog_.count() == 0 || now - fed_ < watchdog_ / 4) return;
  fed_ = now;
  send("WATCHDOG=1");
}

void Notifier::still_stopping(std::chrono::nanoseconds time, std::chrono::steady_clock::time_point now) {
  if (now - extended_ < std::chrono::seconds(1)) return;
  extended_ = now;
  send(extension(time));
}

std::string Notifier::extension(std::chrono::nanoseconds time) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return "EXTEND_TIMEOUT_USEC=" + std::to_string(std::max<std::int64_t>(left, 1'000'000));
}

// A manager that does not read holds nobody up.
void Notifier::send(const std::string& message) const {
  if (!socket_.valid()) return;
  if (::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0)
    spdlog::warn("NOTIFY_SOCKET: {}", std::strerror(errno));
}

}  // namespace eagle::server

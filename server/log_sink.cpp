#include "server/log_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace eagle::server {
namespace {

bool is_socket(int fd) {
  struct stat found {};
  return ::fstat(fd, &found) == 0 && S_ISSOCK(found.st_mode);
}

// A regular file never makes its writer wait, and one opened anew would be written from its beginning.
UniqueFd opened_anew(int fd) {
  struct stat found {};
  if (::fstat(fd, &found) != 0 || (!S_ISFIFO(found.st_mode) && !S_ISCHR(found.st_mode))) return UniqueFd();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
}

}  // namespace

LogSink::LogSink(int fd) : fd_(fd), socket_(is_socket(fd)), unblocked_(opened_anew(fd)) {}

void LogSink::sink_it_(const spdlog::details::log_msg& message) {
  if (dropped_ > 0) {
    const std::string told = std::to_string(dropped_) + " lines were dropped: nobody took them\n";
    if (!write_now(told)) {
      ++dropped_;
      return;
    }
    dropped_ = 0;
  }
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  if (!write_now({line.data(), line.size()})) ++dropped_;
}

bool LogSink::write_now(std::string_view text) {
  if (!rest_.empty()) {
    const ssize_t done = put(rest_);
    if (done > 0) rest_.erase(0, static_cast<std::size_t>(done));
    if (!rest_.empty()) return false;
  }
  const ssize_t done = put(text);
  if (done <= 0) return false;
  rest_ = text.substr(static_cast<std::size_t>(done));
  return true;
}

ssize_t LogSink::put(std::string_view text) {
  if (socket_) return ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (unblocked_.valid()) return ::write(unblocked_.get(), text.data(), text.size());
  // A file, or a place that may not be opened anew: written to where it says that there is room.
  pollfd room{fd_, POLLOUT, 0};
  if (::poll(&room, 1, 0) <= 0) return 0;
  return ::write(fd_, text.data(), text.size());
}

}  // namespace eagle::server

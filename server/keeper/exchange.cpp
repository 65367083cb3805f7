#include "server/keeper/exchange.h"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace eagle::server {
namespace {

std::string link_target(const char* path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlink(path, target.data(), target.size());
  return size < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(size));
}

std::string working_folder() {
  std::array<char, PATH_MAX> folder{};
  return ::getcwd(folder.data(), folder.size()) == nullptr ? std::string() : std::string(folder.data());
}

}  // namespace

// As it was named to exec: a symbolic link may lead to another file by the next time.
std::string program_path() {
  const auto* const named = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  const std::string_view path = named == nullptr ? "" : named;
  if (path.empty() || path.starts_with("/dev/fd/") || path.starts_with("/proc/")) {
    return link_target("/proc/self/exe");
  }
  return path.front() == '/' ? std::string(path) : working_folder() + "/" + std::string(path);
}

StatusOr<Exchange::File> Exchange::file_at(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    return Status(Reason::system, "'" + path + "': " + std::strerror(errno));
  }
  return File{found.st_dev, found.st_ino, found.st_size,
              found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec};
}

StatusOr<Exchange> Exchange::begin(const std::string& program, const std::vector<std::string>& command,
                                   const LeftState& state) {
  EAGLE_ASSIGN_OR_RETURN(const File file, file_at(program));
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd left, write_left_state(state));
  std::vector<std::string> words = command;
  words.emplace_back("--check-state");
  const std::array<int, checked_descriptors> descriptors = {left.get(), state.journal, state.ledger};
  EAGLE_ASSIGN_OR_RETURN(WorkerProcess checker, WorkerProcess::start(program, words, descriptors));
  return Exchange(program, command, file, std::move(checker));
}

Status Exchange::take_answer() {
  const Ending ending = checker_.collect();
  if (ending.exited && ending.status == 0) return {};
  return {Reason::bad_value, "'" + program_ + " --check-state' " + ending.text()};
}

Status Exchange::become(const LeftState& state) const {
  EAGLE_ASSIGN_OR_RETURN(const File file, file_at(program_));
  if (!(file == file_)) {
    return {Reason::bad_value, "'" + program_ + "' is another file by now than the one that was asked"};
  }
  const Status failed = exec(state);
  for (const int fd : state.descriptors()) static_cast<void>(set_inherited(fd, false));
  ::unsetenv(state_variable);
  return failed;
}

Status Exchange::exec(const LeftState& state) const {
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd left, write_left_state(state));
  for (const int fd : state.descriptors()) EAGLE_RETURN_IF_ERROR(set_inherited(fd, true));
  EAGLE_RETURN_IF_ERROR(set_inherited(left.get(), true));
  ::setenv(state_variable, std::to_string(left.get()).c_str(), 1);
  std::vector<std::string> words = command_;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program_.c_str(), arguments.data());
  return {Reason::system, "exec of '" + program_ + "': " + std::strerror(errno)};
}

}  // namespace eagle::server

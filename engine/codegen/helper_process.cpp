#include "engine/codegen/helper_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "eagle/v1/compile.pb.h"
#include "engine/codegen/channel.h"

namespace eagle::codegen {
namespace {

constexpr int helper_channel = 3;

std::filesystem::path own_directory() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_helper), &info) == 0 || info.dli_fname == nullptr)
    return {};
  std::error_code error;
  // For the program itself dli_fname may be the name it was called by.
  const std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
  if (!error) return file.parent_path();
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : program.parent_path();
}

// One caller among those that want the helper, for as long as it does.
struct Place {
  explicit Place(std::atomic<int>& callers) : all(callers), others(callers.fetch_add(1)) {}
  ~Place() { all.fetch_sub(1); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  std::atomic<int>& all;
  const int others;
};

std::string words_for(int wait_status) {
  if (WIFSIGNALED(wait_status)) return std::string("was ended by ") + ::strsignal(WTERMSIG(wait_status));
  return "exited with status " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace

StatusOr<std::string> find_helper() {
  if (const char* named = std::getenv("EAGLE_COMPILE_HELPER"); named != nullptr && *named != '\0') {
    if (::access(named, X_OK) == 0) return std::string(named);
    const std::string why = std::strerror(errno);
    return Status(Reason::compile_failed, "EAGLE_COMPILE_HELPER names '" + std::string(named) +
                                              "', which cannot be run: " + why +
                                              "; name an eagle-compile, or unset it for the installed one");
  }
  const std::filesystem::path here = own_directory();
  std::vector<std::filesystem::path> places = {here / ".", here / "bin", here / "../bin"};
  // Of an installation: libexec/eagle below PREFIX, where `here` is PREFIX/bin, PREFIX/lib/x86_64-linux-gnu
  // or PREFIX/lib/python3/dist-packages/eagle.
  std::filesystem::path prefix = here;
  for (int up = 0; up < 4 && prefix.has_relative_path(); ++up) {
    prefix = prefix.parent_path();
    places.push_back(prefix / "libexec/eagle");
  }
  std::string looked;
  for (const std::filesystem::path& place : places) {
    const std::filesystem::path candidate = (place / "eagle-compile").lexically_normal();
    if (::access(candidate.c_str(), X_OK) == 0) return candidate.string();
    looked += (looked.empty() ? "" : ", ") + candidate.string();
  }
  return Status(Reason::compile_failed, "the compile helper 'eagle-compile' is not installed; looked at " +
                                            looked +
                                            "; install it there or name it with EAGLE_COMPILE_HELPER");
}

HelperProcess::HelperProcess(std::string program, std::chrono::milliseconds timeout, int most_waiting)
    : program_(std::move(program)), timeout_(timeout), most_waiting_(most_waiting) {}

HelperProcess::~HelperProcess() {
  if (pid_ > 0 && owner_ == ::getpid()) stop();
}

std::string HelperProcess::identity() const {
  std::string program = program_;
  if (program.empty()) {
    const StatusOr<std::string> found = find_helper();
    if (!found.ok()) return {};
    program = *found;
  }
  struct stat file {};
  if (::stat(program.c_str(), &file) != 0) return {};
  return program + " " + std::to_string(file.st_size) + " " + std::to_string(file.st_ino) + " " +
         std::to_string(file.st_mtim.tv_sec) + "." + std::to_string(file.st_mtim.tv_nsec);
}

Status HelperProcess::start() {
  std::string program = program_;
  if (program.empty()) {
    EAGLE_ASSIGN_OR_RETURN(program, find_helper());
  }
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return Status(Reason::system, std::string("socketpair: ") + std::strerror(errno));
  }
  UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  // dup2 onto itself would keep close-on-exec; a number out of the way makes the copy a real one.
  if (theirs.get() == helper_channel)
    theirs.reset(::fcntl(helper_channel, F_DUPFD_CLOEXEC, helper_channel + 1));

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), helper_channel);
  // A process group of its own: a Ctrl-C meant for the client must not end a compile.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::array<char*, 2> arguments = {program.data(), nullptr};
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Status(Reason::compile_failed, "cannot start the compile helper " + program + ": " +
                                              std::strerror(failed) +
                                              "; install eagle-compile or name it with EAGLE_COMPILE_HELPER");
  }
  socket_ = std::move(ours);
  pid_ = pid;
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  owner_ = ::getpid();
  return {};
}

std::string HelperProcess::stop() {
  socket_.reset();
  // Closing the socket ends an idle helper by itself; a busy one is not waited for. Where there is no pidfd
  // the number is still ours: it is not given out again before we have waited for it.
  if (pidfd_.valid()) {
    ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  } else {
    ::kill(pid_, SIGKILL);
  }
  pidfd_.reset();
  int wait_status = 0;
  pid_t reaped = -1;
  do {
    reaped = ::waitpid(pid_, &wait_status, 0);
  } while (reaped < 0 && errno == EINTR);
  pid_ = -1;
  // A host that ignores SIGCHLD, or waits for any child, has reaped it already.
  return reaped < 0 ? "is gone" : words_for(wait_status);
}

Status HelperProcess::ensure_running() {
  if (pid_ > 0 && owner_ != ::getpid()) {  // inherited by a fork: the parent's to use and reap
    socket_.reset();
    pidfd_.reset();
    pid_ = -1;
  }
  if (pid_ > 0) {
    // An idle helper leaves by itself; its end of the socket then reads as closed.
    pollfd entry{socket_.get(), POLLIN, 0};
    if (::poll(&entry, 1, 0) > 0) stop();
  }
  return pid_ > 0 ? Status() : start();
}

StatusOr<UniqueFd> HelperProcess::call(const v1::CompileRequest& request, v1::CompileReply& reply) {
  const Place place(callers_);
  if (place.others > most_waiting_) {
    return Status(Reason::quota,
                  std::to_string(place.others) +
                      " kernels of this size are being compiled or wait for it, which is the limit "
                      "(compiles_waiting); try again later, or make the kernel smaller");
  }
  const std::lock_guard lock(mutex_);
  EAGLE_RETURN_IF_ERROR(ensure_running());
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  Status sent = send_frame(socket_.get(), request.SerializeAsString(), -1, deadline);
  if (sent.reason() == Reason::connection_lost) {  // it left between the look and the request
    stop();
    EAGLE_RETURN_IF_ERROR(start());
    sent = send_frame(socket_.get(), request.SerializeAsString(), -1, deadline);
  }
  StatusOr<Frame> frame = sent.ok() ? receive_frame(socket_.get(), deadline) : StatusOr<Frame>(sent);
  if (!frame.ok()) {
    const bool late = frame.status().reason() == Reason::deadline;
    const std::string ended = stop();
    if (late) {
      return Status(Reason::compile_failed, "compiling took longer than " +
                                                std::to_string(timeout_.count() / 1000.0).substr(0, 5) +
                                                " s and was stopped; split the kernel");
    }
    return Status(Reason::compile_failed, "the compile helper " + ended + " while it compiled this kernel");
  }
  if (!reply.ParseFromString(frame->bytes)) {
    stop();
    return Status(Reason::compile_failed, "the compile helper sent bytes that are not a reply");
  }
  if (!reply.error().empty()) return Status(Reason::compile_failed, reply.error());
  return std::move(frame->descriptor);
}

}  // namespace eagle::codegen

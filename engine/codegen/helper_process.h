// HelperProcess: the engine's end of the compile helper, started when needed and replaced when it dies.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::v1 {
class CompileRequest;
class CompileReply;
}  // namespace eagle::v1

namespace eagle::codegen {

// The helper's program: EAGLE_COMPILE_HELPER, else `eagle-compile` beside the program or shared object
// that this code is in, or in bin/ or ../bin/ of there, or in libexec/eagle/ of one of the four folders
// above. COMPILE_FAILED lists the places.
StatusOr<std::string> find_helper();

// Thread-safe; calls are served one after the other. A forked child starts a helper of its own.
class HelperProcess {
public:
  // `program`: empty for find_helper(). `most_waiting`: callers that may wait for their turn.
  HelperProcess(std::string program, std::chrono::milliseconds timeout, int most_waiting);
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  // Sends the request and waits for the reply; the descriptor that came with it, if any. COMPILE_FAILED
  // when the helper reports an error, dies (the signal is named) or takes longer than the timeout: it is
  // then ended and the next call starts another. QUOTA when too many wait already.
  StatusOr<UniqueFd> call(const v1::CompileRequest& request, v1::CompileReply& reply);

  // Tells one build of the helper from another (its file's size, time and number); empty when there is none.
  [[nodiscard]] std::string identity() const;

private:
  Status ensure_running();
  Status start();
  // Ends and reaps the helper; how it had ended, in words.
  std::string stop();

  const std::string program_;
  const std::chrono::milliseconds timeout_;
  const int most_waiting_;
  std::atomic<int> callers_ = 0;
  std::mutex mutex_;
  UniqueFd socket_;
  pid_t pid_ = -1;
  UniqueFd pidfd_;    // of pid_: a signal can never reach another process that got the same number
  pid_t owner_ = -1;  // the process that started it
};

}  // namespace eagle::codegen

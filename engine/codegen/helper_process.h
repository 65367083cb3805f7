// HelperProcess: the engine's end of the compile helper, started when needed and replaced when it dies.
#pragma once

#include <sys/types.h>

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
// that this code is in, or in bin/, ../bin/ or ../libexec/eagle/ of there. COMPILE_FAILED lists the places.
StatusOr<std::string> find_helper();

// Thread-safe; calls are served one after the other. A forked child starts a helper of its own.
class HelperProcess {
public:
  // `program`: empty for find_helper().
  HelperProcess(std::string program, std::chrono::milliseconds timeout);
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  // Sends the request and waits for the reply; the descriptor that came with it, if any. COMPILE_FAILED
  // when the helper reports an error, dies (the signal is named) or takes longer than the timeout: it is
  // then ended and the next call starts another.
  StatusOr<UniqueFd> call(const v1::CompileRequest& request, v1::CompileReply& reply);

private:
  Status ensure_running();
  Status start();
  // Ends and reaps the helper; how it had ended, in words.
  std::string stop();

  const std::string program_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  UniqueFd socket_;
  pid_t pid_ = -1;
  pid_t owner_ = -1;  // the process that started it
};

}  // namespace eagle::codegen

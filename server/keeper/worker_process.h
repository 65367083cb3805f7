// WorkerProcess: the process of a worker, or of another helper, seen from its keeper.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "server/worker_descriptors.h"

namespace eagle::server {

// How a process ended, as waitid says.
struct Ending {
  bool exited = false;  // else by a signal
  int status = 0;       // exit status, or the signal's number
  [[nodiscard]] std::string text() const;
};

class WorkerProcess {
public:
  // Starts `program` with the words of `command` in a process group of its own, with default signal
  // dispositions, and `descriptors` as its own from `first_descriptor` on: the only ones besides the standard
  // ones. SYSTEM.
  static StatusOr<WorkerProcess> start(const std::string& program, const std::vector<std::string>& command,
                                       std::span<const int> descriptors);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  ~WorkerProcess();  // kills it, if it still runs, with its process group

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int process() const { return process_.get(); }  // readable when it has ended
  void kill() const;
  // Once `process` is readable.
  Ending collect();

private:
  WorkerProcess(pid_t pid, UniqueFd process) : pid_(pid), process_(std::move(process)) {}
  pid_t pid_ = 0;  // 0: collected
  UniqueFd process_;
};

}  // namespace eagle::server

// Exchange: another program takes the keeper's place in its process (SIGUSR2): asking it first, and becoming
// it. In between the keeper drains its worker.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "server/keeper/left_state.h"
#include "server/keeper/worker_process.h"

namespace eagle::server {

// What a program that is asked finds from `first_descriptor` on: the state, the journal, the ledger.
constexpr int checked_descriptors = 3;

// The environment variable by which a program learns that it takes another one's place: the number of the
// state's descriptor.
constexpr const char* state_variable = "EAGLED_STATE_FD";

// Where this program was started from: an absolute path, by which the next one is found. Before the process
// changes its folder.
std::string program_path();

class Exchange {
public:
  using Clock = std::chrono::steady_clock;

  // Asks the program at `program` whether it can go on: `command --check-state`. SYSTEM.
  static StatusOr<Exchange> begin(const std::string& program, const std::vector<std::string>& command,
                                  const LeftState& state);

  // Readable when it has answered.
  [[nodiscard]] int answer() const { return checker_.process(); }
  // So long it may take.
  [[nodiscard]] Clock::time_point patience_ends() const { return patience_ends_; }
  void give_up() const { checker_.kill(); }
  // Once `answer` is readable: OK, or why not.
  Status take_answer();

  // Becomes the program. Returns only where that fails, and then everything is as before. BAD_VALUE: it is
  // another file than the one that was asked.
  [[nodiscard]] Status become(const LeftState& state) const;

private:
  // Which file it is.
  struct File {
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const File&, const File&) = default;
  };
  static StatusOr<File> file_at(const std::string& path);

  Exchange(std::string program, std::vector<std::string> command, File file, WorkerProcess checker)
      : program_(std::move(program)),
        command_(std::move(command)),
        file_(file),
        checker_(std::move(checker)),
        patience_ends_(Clock::now() + longest_answer) {}
  Status exec(const LeftState& state) const;

  static constexpr std::chrono::seconds longest_answer{30};

  std::string program_;
  std::vector<std::string> command_;
  File file_;
  WorkerProcess checker_;
  Clock::time_point patience_ends_;
};

}  // namespace eagle::server

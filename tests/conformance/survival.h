// What tests of survival share: daemons whose processes are killed or exchanged, and their clients.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "eagle/client/graph.h"
#include "eagle/client/session.h"
#include "tests/conformance/daemon_process.h"
#include "tests/conformance/models.h"

namespace eagle::conformance {

constexpr std::int64_t endless = std::int64_t{1} << 50;

// Asks until it is so; a test that waits in vain is ended by its watchdog.
inline void wait_until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

template <typename T>
T must(StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(value.status().to_string());
  return *std::move(value);
}
inline void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.to_string());
}

// Adds 1 to x. `name` makes it another graph for the daemon, which does not launch one again that was
// computing at two deaths; it is that of the graph and of its node.
inline std::unique_ptr<Graph> stepping(const Session& session, const Array<double>& x,
                                       const std::string& name = "step") {
  auto g = std::make_unique<Graph>(session, GraphOptions{.name = name});
  must(g->add({affine(), {{"x", x}, {"y", x}, {"a", 1.0}, {"b", 1.0}}}, name));
  must(g->build());
  return g;
}

class Survival : public ::testing::Test {
protected:
  void start(const std::vector<std::string>& options = {}) {
    process = must(DaemonProcess::start(1, options));
    session.emplace(connected());
  }
  // With fault points armed.
  void start_to_fail_at(const std::string& faults) {
    ::setenv("EAGLED_FAULT", faults.c_str(), 1);
    start();
    ::unsetenv("EAGLED_FAULT");
  }
  [[nodiscard]] Session connected(ConnectOptions options = {}) const {
    options.timeout = std::max<std::chrono::milliseconds>(options.timeout, std::chrono::seconds(60));
    return must(connect(process->endpoint(), options));
  }
  [[nodiscard]] pid_t worker() const { return static_cast<pid_t>(must(session->info()).host.pid); }
  // Returns when none of its threads runs any more: a signal takes a moment to reach those on other
  // processors.
  static void stop_and_wait(pid_t pid) {
    ASSERT_EQ(::kill(pid, SIGSTOP), 0);
    const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
    wait_until([&tasks] {
      std::error_code gone;
      for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
        std::ifstream file(task.path() / "stat");
        std::string stat;
        std::getline(file, stat);
        const std::size_t name_ends = stat.rfind(')');  // the state follows
        if (name_ends == std::string::npos || name_ends + 2 >= stat.size()) continue;
        if (stat[name_ends + 2] != 'T') return false;
      }
      return true;
    });
  }
  static void kill_and_wait(pid_t pid) {
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    wait_until([pid] { return ::kill(pid, 0) != 0; });
  }
  void kill_worker() const { kill_and_wait(worker()); }
  // What the daemon holds, in all.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> held() const {
    const SessionInfo info = must(session->info());
    return {info.planes, info.graphs};
  }

  std::unique_ptr<DaemonProcess> process;
  std::optional<Session> session;
};

// Of a test's parameter: letters and digits.
inline std::string name_of_fault(const ::testing::TestParamInfo<const char*>& fault) {
  std::string name(fault.param);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

}  // namespace eagle::conformance

// CrashLoop: when there is no sense in starting another worker.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace eagle::server {

// Thread-compatible; the clock is the caller's.
class CrashLoop {
public:
  using Time = std::chrono::steady_clock::time_point;
  // More deaths than this within the window, and there is no sense in going on.
  static constexpr std::size_t most_deaths = 4;
  // The same of workers in a row none of which came to serve, however long each of them took.
  static constexpr std::size_t most_starts = 4;
  // The same of deaths that are laid to graphs, within so many of the windows: an hour by default. A graph's
  // deaths count apart: its tenant is stopped long before (quarantine.h), so that this many are the work of
  // several, or of something that only looks like a graph's.
  static constexpr std::size_t most_deaths_of_graphs = 30;
  static constexpr std::uint32_t graph_windows = 60;

  explicit CrashLoop(std::chrono::seconds window) : window_(window) {}

  // A worker serves.
  void served() { starts_ = 0; }
  enum class Death : std::uint8_t {
    of_a_graph,      // one was running
    while_serving,   // of nobody knows what
    before_serving,  // it never came so far, or could not be started
  };
  // Empty: start another. Else why not.
  std::string died(Death death, Time now);

private:
  static std::size_t count(std::deque<Time>& deaths, Time now, std::chrono::seconds window);

  const std::chrono::seconds window_;
  std::deque<Time> deaths_;
  std::deque<Time> deaths_of_graphs_;
  std::size_t starts_ = 0;  // that came to nothing, in a row
};

}  // namespace eagle::server

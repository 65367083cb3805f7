// Jobs for tests of the executor.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "engine/base/status.h"
#include "server/executor.h"

namespace eagle::server::testing {

// A job that does what the test says.
class Scripted final : public Job {
public:
  explicit Scripted(std::function<Next()> turn) : turn_(std::move(turn)) {}
  Next advance() override { return turn_(); }
  void cancel() override {}

private:
  std::function<Next()> turn_;
};

inline std::shared_ptr<Job> job(std::function<Job::Next()> turn) {
  return std::make_shared<Scripted>(std::move(turn));
}

// Computes until it is stopped, whatever happens.
class Endless final : public Job {
public:
  Next advance() override {
    began_ = true;
    while (!cancelled_) std::this_thread::yield();
    return Next::done;
  }
  void cancel() override { cancelled_ = true; }
  void stop(const Status& why) override {
    why_ = why;
    cancel();
  }
  void wait_until_it_runs() const {
    while (!began_) std::this_thread::yield();
  }
  [[nodiscard]] const Status& why() const { return why_; }

private:
  std::atomic<bool> began_ = false;
  std::atomic<bool> cancelled_ = false;
  Status why_;
};

}  // namespace eagle::server::testing

// What the service counts, and how Prometheus reads it. For one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace example {

class Metrics {
public:
  void launched(double seconds);  // one launch that was whole
  void missed_deadline() { ++deadline_missed_; }
  void skipped_tick() { ++ticks_skipped_; }  // the launch before it was still running
  void worker_restarted() { ++worker_restarts_; }
  void reconnected() { ++reconnects_; }
  void failed(std::string_view reason) { ++failures_[std::string(reason)]; }
  void serving(bool yes) { serving_ = yes; }
  void value(const std::string& plane, double value) { values_[plane] = value; }

  [[nodiscard]] bool is_serving() const { return serving_; }
  // The text exposition format, version 0.0.4.
  [[nodiscard]] std::string text() const;

private:
  static constexpr std::array bounds = {0.0001, 0.001, 0.01, 0.1, 1.0, 10.0};  // seconds
  std::array<std::uint64_t, bounds.size()> at_most_{};
  std::uint64_t launches_ = 0;
  double seconds_ = 0;
  std::uint64_t deadline_missed_ = 0;
  std::uint64_t ticks_skipped_ = 0;
  std::uint64_t worker_restarts_ = 0;
  std::uint64_t reconnects_ = 0;
  std::map<std::string, std::uint64_t> failures_;  // by reason
  std::map<std::string, double> values_;           // planes of one number
  bool serving_ = false;
};

}  // namespace example

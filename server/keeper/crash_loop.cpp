#include "server/keeper/crash_loop.h"

namespace eagle::server {

std::size_t CrashLoop::count(std::deque<Time>& deaths, Time now, std::chrono::seconds window) {
  deaths.push_back(now);
  while (now - deaths.front() > window) deaths.pop_front();
  return deaths.size();
}

std::string CrashLoop::died(Death death, Time now) {
  if (death == Death::of_a_graph) {
    const std::chrono::seconds window = window_ * graph_windows;
    if (count(deaths_of_graphs_, now, window) <= most_deaths_of_graphs) return {};
    return "graphs were running at more than " + std::to_string(most_deaths_of_graphs) +
           " deaths of the worker within " + std::to_string(window.count()) +
           " s; giving up. The log says which";
  }
  if (death == Death::before_serving && ++starts_ > most_starts) {
    return std::to_string(starts_) +
           " workers in a row ended before they served: none of them could take over what there is; giving "
           "up. "
           "The log says how each of them ended";
  }
  if (count(deaths_, now, window_) <= most_deaths) return {};
  return "the worker died " + std::to_string(most_deaths + 1) + " times within " +
         std::to_string(window_.count()) + " s; giving up. The log says how";
}

}  // namespace eagle::server

// What `top` shows, computed from two readings of /metrics.
#ifndef HIPPODROME_TOOLS_TOP_TOP_FIGURES_H_
#define HIPPODROME_TOOLS_TOP_TOP_FIGURES_H_

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/client/metrics_text.h"

namespace hippodrome {

// Seconds. None: there was nothing in the interval, or the server does not count it.
struct LatencyFigures {
  std::optional<double> p50;
  std::optional<double> p99;
};

struct ModelFigures {
  std::string name;
  std::optional<double> new_tokens;     // a second; of encoders, tokens that they read
  std::optional<double> prompt_tokens;  // a second
  std::optional<double> queued;
  std::optional<double> running;
  std::optional<double> slots;  // in use
  std::optional<double> all_slots;
  std::optional<double> bytes;      // of state, in use
  std::optional<double> all_bytes;  // that there is room for
  LatencyFigures first_token;
  LatencyFigures between_tokens;
  LatencyFigures request;
};

struct TopFigures {
  std::string version;
  double seconds = 0;  // between the readings; 0: there is one only, and no rates and latencies
  // A second; with totals, since the server began.
  std::optional<double> new_tokens;
  std::optional<double> prompt_tokens;
  std::optional<double> encoded_tokens;
  std::optional<double> requests;          // answered with success
  std::map<std::string, double> failures;  // by reason; those that are 0 left out
  std::optional<double> queued;
  std::optional<double> running;
  std::optional<double> http_connections;
  std::optional<double> grpc_connections;
  std::optional<double> resident_bytes;
  LatencyFigures first_token;
  LatencyFigures between_tokens;
  LatencyFigures request;
  std::vector<ModelFigures> models;  // by name
};

// `before`: null for the first reading. `totals`: counts since the server began in place of rates.
// A counter that is less than before began anew with the server, and counts from 0.
TopFigures FiguresBetween(const MetricsText* before, const MetricsText& now,
                          std::chrono::duration<double> between, bool totals);

// The same for scripts: what is not known is null.
nlohmann::json ToJson(const TopFigures& figures);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TOP_TOP_FIGURES_H_

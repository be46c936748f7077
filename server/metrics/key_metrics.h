// The series of one API key.
#ifndef HIPPODROME_SERVER_METRICS_KEY_METRICS_H_
#define HIPPODROME_SERVER_METRICS_KEY_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "server/metrics/metrics.h"

namespace hippodrome {

// Why a call with a key that is known was refused.
enum class KeyRefusal : uint8_t { kExpired, kAdmin, kModel, kRate, kCalls, kTokens, kBytes };

// Labelled by the name of the key, which an operator chose. Thread-safe.
class KeyMetrics {
 public:
  // `metrics` must outlive this.
  KeyMetrics(Metrics& metrics, const std::string& key);
  ~KeyMetrics();

  void Admitted();
  void Refused(KeyRefusal why);
  // What is held now.
  void SetHeld(int64_t calls, int64_t tokens, int64_t bytes);

 private:
  struct Series;
  const std::unique_ptr<Series> series_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_METRICS_KEY_METRICS_H_

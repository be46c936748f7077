// HTTP work that a test completes by hand.
#ifndef HIPPODROME_TESTS_TESTING_MANUAL_WORK_H_
#define HIPPODROME_TESTS_TESTING_MANUAL_WORK_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "server/http/http_types.h"

namespace hippodrome {

// Any number of these may share a control.
class ManualWork : public HttpWork {
 public:
  struct Control {
    std::mutex mutex;
    std::function<void()> wake;
    std::string pending;
    bool done = false;
    bool destroyed = false;

    void Add(const std::string& text, bool last) {
      std::lock_guard lock(mutex);
      pending += text;
      done = last;
      if (wake) wake();
    }
    bool WasDestroyed() {
      std::lock_guard lock(mutex);
      return destroyed;
    }
    bool Started() {
      std::lock_guard lock(mutex);
      return wake != nullptr;
    }
  };

  explicit ManualWork(std::shared_ptr<Control> control) : control_(std::move(control)) {}
  ~ManualWork() override {
    std::lock_guard lock(control_->mutex);
    control_->destroyed = true;
    control_->wake = nullptr;
  }
  void OnUpdate(std::function<void()> wake) override {
    std::lock_guard lock(control_->mutex);
    control_->wake = std::move(wake);
    control_->wake();
  }
  bool Advance(HttpResponse& response) override {
    std::lock_guard lock(control_->mutex);
    response.body += std::exchange(control_->pending, "");
    return control_->done;
  }

 private:
  std::shared_ptr<Control> control_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_MANUAL_WORK_H_

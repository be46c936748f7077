#include "tools/top/top_state.h"

#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr size_t kMostHistory = 300;

void Push(History& history, const std::optional<double>& value) {
  history.push_back(value);
  if (history.size() > kMostHistory) history.pop_front();
}

}  // namespace

void TopState::Add(const absl::StatusOr<std::string>& text, Time time, const std::string& clock) {
  if (frame_.paused) return;
  frame_.clock = clock;
  absl::StatusOr<MetricsText> metrics =
      text.ok() ? MetricsText::Parse(*text) : absl::StatusOr<MetricsText>(text.status());
  if (!metrics.ok()) {
    frame_.problem = Message(metrics.status()) + "; trying again";
    // What comes next says nothing about the time in between.
    before_.reset();
    now_.reset();
    Remember();
    return;
  }
  frame_.problem.clear();
  before_ = std::exchange(now_, Reading{*std::move(metrics), time});
  frame_.known = true;
  Refresh();
  if (before_) Remember();
}

void TopState::ToggleTotals() {
  frame_.totals = !frame_.totals;
  if (now_) Refresh();
}

void TopState::Refresh() {
  const Time since = before_ ? before_->time : now_->time;
  frame_.figures = FiguresBetween(before_ ? &before_->metrics : nullptr, now_->metrics,
                                  now_->time - since, frame_.totals);
}

// Of rates, whatever is shown.
void TopState::Remember() {
  TopFigures rates;
  if (before_ && now_) {
    rates = FiguresBetween(&before_->metrics, now_->metrics, now_->time - before_->time, false);
  }
  Push(frame_.new_tokens, rates.new_tokens);
  Push(frame_.prompt_tokens, rates.prompt_tokens);
  Push(frame_.requests, rates.requests);
}

}  // namespace hippodrome

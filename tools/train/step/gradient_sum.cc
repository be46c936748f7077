#include "tools/train/step/gradient_sum.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "tools/mpi/collectives.h"

namespace hippodrome {
namespace {

// Adds how long it lives.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  double& seconds_;
  const Clock::time_point start_ = Clock::now();
};

// Two ranks exchange one sum of a bucket at each level, at most, and the total last.
int TagOf(size_t bucket, const TreeNode& node) {
  constexpr int kLevels = 32;
  return 1 + static_cast<int>(bucket) * kLevels + node.level;
}

}  // namespace

GradientSum::GradientSum(TrainingBackend& backend, std::vector<Bucket> buckets,
                         int64_t micro_batches, Communicator* ranks, bool sharded)
    : backend_(backend),
      buckets_(std::move(buckets)),
      tree_(micro_batches, ranks == nullptr ? 1 : ranks->size()),
      ranks_(ranks),
      rank_(ranks == nullptr ? 0 : ranks->rank()),
      sharded_(sharded && ranks != nullptr),
      progress_(buckets_),
      sums_(buckets_.size()) {}

void GradientSum::Begin() {
  if (ranks_ == nullptr) return;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    Expect(b, tree_.root());
    if (!sharded_ && Owner(b) != rank_) Receive(Owner(b), b, tree_.root());
  }
}

void GradientSum::Expect(size_t bucket, const TreeNode& node) {
  if (tree_.IsLocal(node)) return;
  const TreeNode children[] = {node.left(), node.right()};
  for (const TreeNode& child : children) {
    if (!tree_.Exists(child)) continue;
    Expect(bucket, child);
    const int from = tree_.Holder(child, bucket);
    if (from != rank_ && tree_.Holder(node, bucket) == rank_) Receive(from, bucket, child);
  }
}

void GradientSum::BeginMicroBatch(int64_t index) {
  micro_batch_ = index;
  progress_.Begin();
}

void GradientSum::Complete(const Parameter& parameter) {
  for (const size_t b : progress_.Complete(parameter)) Take(b);
  if (ranks_ != nullptr) Poll();
}

void GradientSum::EndMicroBatch() {
  for (const size_t b : progress_.End()) Take(b);
}

void GradientSum::Take(size_t bucket) {
  // The only one is the sum.
  if (tree_.micro_batches() == 1 && ranks_ == nullptr) return;
  Put(bucket, {0, micro_batch_}, Download(bucket, &ParameterBlock::gradient));
}

void GradientSum::Put(size_t bucket, TreeNode node, Values sum) {
  std::map<TreeNode, Values>& sums = sums_[bucket];
  for (; node != tree_.root(); node = node.parent()) {
    const int holder = tree_.Holder(node.parent(), bucket);
    if (holder != rank_) return Send(holder, bucket, node, sum);
    if (!tree_.Exists(node.sibling())) continue;
    const auto sibling = sums.find(node.sibling());
    if (sibling == sums.end()) {
      sums[node] = std::move(sum);
      return;
    }
    const std::vector<float>& added = *sibling->second;
    for (size_t i = 0; i < added.size(); ++i) (*sum)[i] += added[i];
    spare_.push_back(std::move(sibling->second));
    sums.erase(sibling);
  }
  Upload(bucket, &ParameterBlock::gradient, sum);
  sharded_ ? spare_.push_back(std::move(sum)) : SendToAll(bucket, sum);
}

void GradientSum::Finish() {
  if (ranks_ != nullptr) WaitForAll();
}

void GradientSum::BroadcastValues() {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    if (Owns(b)) {
      SendToAll(b, Download(b, &ParameterBlock::value));
    } else {
      Receive(Owner(b), b, tree_.root());
    }
  }
  WaitForAll();
}

// ---- Messages ----------------------------------------------------------------------------------

void GradientSum::Receive(int from, size_t bucket, const TreeNode& node) {
  Values values = NewValues(bucket);
  const auto transfer =
      ranks_->Receive(from, TagOf(bucket, node), std::as_writable_bytes(std::span(*values)));
  incoming_.push_back({transfer, from, bucket, node, std::move(values)});
}

void GradientSum::Send(int to, size_t bucket, const TreeNode& node, const Values& values) {
  const Stopwatch stopwatch(seconds_);
  const auto transfer = ranks_->Send(to, TagOf(bucket, node), std::as_bytes(std::span(*values)));
  outgoing_.push_back({transfer, to, values});
}

void GradientSum::SendToAll(size_t bucket, const Values& values) {
  for (int to = 0; ranks_ != nullptr && to < ranks_->size(); ++to) {
    if (to != rank_) Send(to, bucket, tree_.root(), values);
  }
  if (values.use_count() == 1) spare_.push_back(values);
}

void GradientSum::TakeIn(const Incoming& message) {
  if (message.node != tree_.root()) return Put(message.bucket, message.node, message.values);
  Upload(message.bucket, sharded_ ? &ParameterBlock::value : &ParameterBlock::gradient,
         message.values);
  spare_.push_back(message.values);
}

bool GradientSum::Poll() {
  std::vector<Incoming> arrived;
  size_t ended = 0;
  {
    const Stopwatch stopwatch(seconds_);
    ended = std::erase_if(outgoing_, [&](Outgoing& message) {
      if (!ranks_->Done(message.transfer)) return false;
      if (message.values.use_count() == 1) spare_.push_back(std::move(message.values));
      return true;
    });
    std::erase_if(incoming_, [&](Incoming& message) {
      if (!ranks_->Done(message.transfer)) return false;
      arrived.push_back(std::move(message));
      return true;
    });
  }
  for (const Incoming& message : arrived) TakeIn(message);
  return ended + arrived.size() > 0;
}

void GradientSum::WaitForAll() {
  std::optional<Patience> patience;
  while (!incoming_.empty() || !outgoing_.empty()) {
    if (Poll()) {
      patience.reset();
      continue;
    }
    const Stopwatch stopwatch(seconds_);
    if (!patience.has_value()) patience.emplace(*ranks_);
    patience->Pause(incoming_.empty() ? outgoing_[0].to : incoming_[0].from);
  }
}

// ---- Values ------------------------------------------------------------------------------------

GradientSum::Values GradientSum::NewValues(size_t bucket) {
  const auto size = static_cast<size_t>(SizeOf(buckets_[bucket]));
  if (spare_.empty()) return std::make_shared<std::vector<float>>(size);
  Values values = std::move(spare_.back());
  spare_.pop_back();
  values->resize(size);
  return values;
}

GradientSum::Values GradientSum::Download(size_t bucket, Place place) {
  Values values = NewValues(bucket);
  std::span<float> rest = *values;
  for (const ParameterBlock& block : buckets_[bucket]) {
    const auto size = static_cast<size_t>(block.size());
    backend_.Download((block.*place)(), rest.first(size));
    rest = rest.subspan(size);
  }
  return values;
}

void GradientSum::Upload(size_t bucket, Place place, const Values& values) {
  std::span<const float> rest = *values;
  for (const ParameterBlock& block : buckets_[bucket]) {
    const auto size = static_cast<size_t>(block.size());
    backend_.Upload(rest.first(size), (block.*place)());
    rest = rest.subspan(size);
  }
}

}  // namespace hippodrome

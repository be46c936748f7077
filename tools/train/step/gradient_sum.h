// Sums the gradients of a batch's micro-batches, over all ranks, with the same bits however many
// there are.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_SUM_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_SUM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernels/training_backend.h"
#include "tools/mpi/communicator.h"
#include "tools/train/step/gradient_tree.h"
#include "tools/train/step/parameter_blocks.h"

namespace hippodrome {

// In host memory, for backends on processors, in the order of a GradientTree. Between ranks a
// bucket goes point to point as soon as its gradient is complete, while the backward goes on.
//
//   sum.Begin();
//   for each micro-batch i of sum.share():
//     <zero the gradients>  sum.BeginMicroBatch(i);  <backward, Complete() as the tape tells>
//     sum.EndMicroBatch();
//   sum.Finish();
//
// Not thread-safe; the thread that uses it is the one that may use the backend and the ranks, which
// must outlive it as the parameters must. All ranks make the same calls.
class GradientSum {
 public:
  // `ranks`: null for one process. `sharded`: totals stay with the rank that owns their bucket.
  GradientSum(TrainingBackend& backend, std::vector<Bucket> buckets, int64_t micro_batches,
              Communicator* ranks, bool sharded);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  bool sharded() const { return sharded_; }
  // The micro-batches that this rank learns.
  Share share() const { return tree_.OfRank(rank_); }
  // The rank that updates a bucket; without shards all do, and this is one of them.
  int Owner(size_t bucket) const { return tree_.Holder(tree_.root(), bucket); }
  bool Owns(size_t bucket) const { return !sharded_ || Owner(bucket) == rank_; }

  void Begin();
  void BeginMicroBatch(int64_t index);
  // Nothing more will be added to the parameter's gradient in this micro-batch.
  void Complete(const Parameter& parameter);
  // All gradients are complete.
  void EndMicroBatch();
  // Returns when the gradients are the sums over all micro-batches: those of owned buckets.
  void Finish();

  // The parameters' values of owned buckets for all ranks. Only with shards.
  void BroadcastValues();

  // How long this rank has sent, received and waited for others, since it was made.
  double seconds() const { return seconds_; }

 private:
  using Values = std::shared_ptr<std::vector<float>>;

  struct Incoming {
    Communicator::Transfer transfer;
    int from;
    size_t bucket;
    TreeNode node;
    Values values;
  };
  struct Outgoing {
    Communicator::Transfer transfer;
    int to;
    Values values;
  };

  // Begins to receive what others will send of `bucket` for sums under `node`.
  void Expect(size_t bucket, const TreeNode& node);
  void Receive(int from, size_t bucket, const TreeNode& node);
  void Send(int to, size_t bucket, const TreeNode& node, const Values& values);
  void SendToAll(size_t bucket, const Values& values);
  // Takes the gradient of this micro-batch.
  void Take(size_t bucket);
  // Adds the sum `node` to its sibling, and so on as far as this rank can; or sends it.
  void Put(size_t bucket, TreeNode node, Values sum);
  void TakeIn(const Incoming& message);
  // Moves messages on, and takes in what has come. Returns whether any has ended.
  bool Poll();
  // Until there are no more messages under way.
  void WaitForAll();

  // The gradients or the values of a bucket's blocks, one after another.
  using Place = Tensor (ParameterBlock::*)() const;
  Values Download(size_t bucket, Place place);
  void Upload(size_t bucket, Place place, const Values& values);
  Values NewValues(size_t bucket);

  TrainingBackend& backend_;
  const std::vector<Bucket> buckets_;
  const GradientTree tree_;
  Communicator* const ranks_;
  const int rank_;
  const bool sharded_;
  BucketProgress progress_;                       // of the micro-batch
  std::vector<std::map<TreeNode, Values>> sums_;  // of each bucket, those that wait for siblings
  int64_t micro_batch_ = 0;
  std::vector<Incoming> incoming_;
  std::vector<Outgoing> outgoing_;
  std::vector<Values> spare_;
  double seconds_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_SUM_H_

#include "engine/state/prefix_tree.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace hippodrome {

struct PrefixTree::Node {
  std::vector<int32_t> edge;          // tokens since the parent's; empty for a root
  Node* parent = nullptr;             // null for a root
  std::string salt;                   // of a root
  std::map<int32_t, Child> children;  // by the first token of their edges
  std::optional<SequenceState> state;
  std::list<Node*>::iterator use;  // in by_use_, where there is a state
};

namespace {

int64_t Common(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

PrefixTree::PrefixTree() = default;
PrefixTree::~PrefixTree() = default;

PrefixTree::Found PrefixTree::Find(const std::string& salt, std::span<const int32_t> prompt,
                                   int64_t least, int64_t most) const {
  Found found;
  const auto root = roots_.find(salt);
  if (root == roots_.end()) return found;
  const Node* node = root->second.get();
  const int64_t size = std::ssize(prompt);
  while (found.common < size) {
    const auto child = node->children.find(prompt[found.common]);
    if (child == node->children.end()) return found;
    node = child->second.get();
    const int64_t tokens = Common(node->edge, prompt.subspan(found.common));
    found.common += tokens;
    if (tokens < std::ssize(node->edge)) return found;
    if (node->state && found.common >= least && found.common <= most) {
      found.position = found.common;
      found.state = &*node->state;
    }
  }
  return found;
}

// The node of exactly these tokens, or null.
const PrefixTree::Node* PrefixTree::Walk(const std::string& salt,
                                         std::span<const int32_t> prefix) const {
  const auto root = roots_.find(salt);
  if (root == roots_.end()) return nullptr;
  const Node* node = root->second.get();
  while (!prefix.empty()) {
    const auto child = node->children.find(prefix.front());
    if (child == node->children.end()) return nullptr;
    node = child->second.get();
    const int64_t tokens = Common(node->edge, prefix);
    if (tokens < std::ssize(node->edge)) return nullptr;
    prefix = prefix.subspan(tokens);
  }
  return node;
}

bool PrefixTree::Touch(const std::string& salt, std::span<const int32_t> prefix) {
  const Node* node = Walk(salt, prefix);
  if (node == nullptr || !node->state) return false;
  by_use_.splice(by_use_.end(), by_use_, node->use);
  return true;
}

// Puts a node before `node` that has the first `tokens` of its edge.
PrefixTree::Child& PrefixTree::Split(Child& node, int64_t tokens) {
  auto upper = std::make_unique<Node>();
  upper->edge.assign(node->edge.begin(), node->edge.begin() + tokens);
  std::vector<int32_t> rest(node->edge.begin() + tokens, node->edge.end());
  Child& place = upper->children[rest.front()];
  upper->parent = node->parent;
  node->parent = upper.get();
  node->edge.swap(rest);
  place = std::exchange(node, std::move(upper));
  return node;
}

void PrefixTree::Put(const std::string& salt, std::span<const int32_t> prefix,
                     SequenceState state) {
  assert(!prefix.empty());
  Child& root = roots_[salt];
  if (root == nullptr) {
    root = std::make_unique<Node>();
    root->salt = salt;
  }
  Node* node = root.get();
  while (!prefix.empty()) {
    Child& child = node->children[prefix.front()];
    if (child == nullptr) {
      child = std::make_unique<Node>();
      child->edge.assign(prefix.begin(), prefix.end());
      child->parent = node;
    }
    const int64_t tokens = Common(child->edge, prefix);
    if (tokens < std::ssize(child->edge)) Split(child, tokens);
    node = child.get();
    prefix = prefix.subspan(tokens);
  }
  assert(!node->state);
  node->use = by_use_.insert(by_use_.end(), node);
  node->state = std::move(state);
}

std::optional<SequenceState> PrefixTree::TakeOldest() {
  if (by_use_.empty()) return std::nullopt;
  Node* node = by_use_.front();
  by_use_.pop_front();
  std::optional<SequenceState> state = std::exchange(node->state, std::nullopt);
  Prune(node);
  return state;
}

// Removes what leads to no state any more, and joins a node that no longer branches with the next:
// so the tree is no deeper than its states are many.
void PrefixTree::Prune(Node* node) {
  while (!node->state && node->children.empty() && node->parent != nullptr) {
    Node* parent = node->parent;
    const int32_t first = node->edge.front();
    parent->children.erase(first);
    node = parent;
  }
  if (node->state || node->children.size() > 1) return;
  if (node->parent != nullptr) return Join(node);
  if (!node->children.empty()) return;
  const std::string salt = std::move(node->salt);
  roots_.erase(salt);
}

void PrefixTree::Join(Node* node) {
  Child child = std::move(node->children.begin()->second);
  child->edge.insert(child->edge.begin(), node->edge.begin(), node->edge.end());
  child->parent = node->parent;
  node->parent->children.at(child->edge.front()) = std::move(child);  // the end of `node`
}

}  // namespace hippodrome

//! PageRank (Page, Brin, Motwani, Winograd 1999): of the whole graph, and the part of one iteration
//! that a request computes.

use super::graph::Graph;

/// The share of a node's score that its edges pass on.
pub(crate) const DAMPING: f64 = 0.85;

/// Direction of scores in an iteration of the whole graph. The results are the same up to rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Each node gathers from where its edges come from.
    Pull,
    /// Each node scatters to where its edges lead.
    Push,
}

/// The scores after some iterations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranks {
    /// One a node; their sum is 1.
    pub(crate) scores: Vec<f64>,
    /// Number of iterations that were made.
    pub(crate) iterations: u32,
    /// The sum over all nodes of how much the last iteration changed their score.
    pub(crate) change: f64,
}

/// Iterates from equal scores until `iterations` were made or one changed less than `tolerance` in
/// sum. The scores of nodes without edges are spread over all nodes, so that no score is lost.
pub(crate) fn ranks(graph: &Graph, iterations: u32, tolerance: f64, way: Direction) -> Ranks {
    let nodes = graph.nodes();
    let mut scores = vec![1.0 / nodes as f64; nodes];
    let mut sums = vec![0.0; nodes];
    let mut shares = vec![0.0; nodes];
    let (mut made, mut change) = (0, f64::INFINITY);
    while made < iterations && change > tolerance {
        let base = base(graph, |node| scores[node]);
        for (node, share) in shares.iter_mut().enumerate() {
            *share = scores[node] / graph.out_degree(node).max(1) as f64;
        }
        match way {
            Direction::Pull => pull(graph, &shares, &mut sums),
            Direction::Push => push(graph, &shares, &mut sums),
        }
        change = 0.0;
        for (score, sum) in scores.iter_mut().zip(&sums) {
            let next = base + DAMPING * sum;
            change += (next - *score).abs();
            *score = next;
        }
        made += 1;
    }
    Ranks { scores, iterations: made, change }
}

/// The score of every node whatever its edges: the random jump, and its part of dangling scores.
fn base(graph: &Graph, score: impl Fn(usize) -> f64) -> f64 {
    let nodes = graph.nodes();
    let dangling = (0..nodes).filter(|node| graph.out_degree(*node) == 0).map(score).sum::<f64>();
    (1.0 - DAMPING + DAMPING * dangling) / nodes as f64
}

fn pull(graph: &Graph, shares: &[f64], sums: &mut [f64]) {
    for (node, sum) in sums.iter_mut().enumerate() {
        *sum = graph.sources(node).iter().map(|source| shares[*source as usize]).sum();
    }
}

fn push(graph: &Graph, shares: &[f64], sums: &mut [f64]) {
    sums.fill(0.0);
    for (node, share) in shares.iter().enumerate() {
        for target in graph.targets(node) {
            sums[*target as usize] += share;
        }
    }
}

/// A node and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) node: u32,
    pub(crate) score: f32,
}

/// The best nodes first; of equal ones that with the lower number.
pub(crate) fn by_rank(a: &Ranked, b: &Ranked) -> std::cmp::Ordering {
    b.score.total_cmp(&a.score).then(a.node.cmp(&b.node))
}

/// The scores that are served, in the precision of the original (32 bits), and one more iteration
/// over parts of the graph.
#[derive(Debug)]
pub(crate) struct Served {
    scores: Vec<f32>,
    base: f32,
}

/// Part of the graph that a task computes. Places go on at the first node after the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Nodes whose share is computed, from here.
    pub(crate) share_from: usize,
    /// Their number.
    pub(crate) share_nodes: usize,
    /// Nodes whose score is computed, from here.
    pub(crate) score_from: usize,
    /// Their number.
    pub(crate) score_nodes: usize,
}

impl Served {
    /// Scores that an iteration changes by less than one part in 100,000.
    pub(crate) fn new(graph: &Graph) -> Self {
        let ranks = ranks(graph, 100, 1e-5, Direction::Pull);
        let base = base(graph, |node| ranks.scores[node]) as f32;
        Self { scores: ranks.scores.iter().map(|score| *score as f32).collect(), base }
    }

    /// The share that each node passes on along each of its edges.
    pub(crate) fn shares(&self, graph: &Graph) -> Vec<f32> {
        (0..graph.nodes()).map(|node| self.share(graph, node)).collect()
    }

    #[inline]
    fn share(&self, graph: &Graph, node: usize) -> f32 {
        self.scores[node] / graph.out_degree(node).max(1) as f32
    }

    /// One iteration over a part: shares first, into a vector that holds those of all nodes; then
    /// scores, of which the best `best` are given, in order.
    pub(crate) fn iterate(
        &self,
        graph: &Graph,
        part: Part,
        shares: &mut [f32],
        best: usize,
    ) -> Vec<Ranked> {
        for range in ranges(part.share_from, part.share_nodes, graph.nodes()) {
            for node in range {
                shares[node] = self.share(graph, node);
            }
        }
        let mut top: Vec<Ranked> = Vec::with_capacity(best + 1);
        let mut least = f32::NEG_INFINITY;
        for range in ranges(part.score_from, part.score_nodes, graph.nodes()) {
            for node in range {
                let gathered = |sum: f32, source: &u32| sum + shares[*source as usize];
                let sum = graph.sources(node).iter().fold(0.0, gathered);
                let score = self.base + DAMPING as f32 * sum;
                if score > least || top.len() < best {
                    let ranked = Ranked { node: node as u32, score };
                    let place = top.partition_point(|other| by_rank(other, &ranked).is_lt());
                    top.insert(place, ranked);
                    top.truncate(best);
                    least = top.last().map_or(f32::INFINITY, |last| last.score);
                }
            }
        }
        top
    }
}

/// The one or two ranges of `count` nodes from a start, wrapping at the end.
fn ranges(from: usize, count: usize, nodes: usize) -> [std::ops::Range<usize>; 2] {
    let from = from % nodes;
    let count = count.min(nodes);
    let end = (from + count).min(nodes);
    [from..end, 0..count - (end - from)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;

    /// The Google matrix, dense, column by column, and its powers: shares no code with the above.
    fn by_power_iteration(graph: &Graph, iterations: usize) -> Vec<f64> {
        let n = graph.nodes();
        let mut matrix = vec![vec![0.15 / n as f64; n]; n];
        for column in 0..n {
            let targets = graph.targets(column);
            let part = 0.85 / if targets.is_empty() { n } else { targets.len() } as f64;
            for (number, row) in matrix.iter_mut().enumerate() {
                if targets.is_empty() || targets.contains(&(number as u32)) {
                    row[column] += part;
                }
            }
        }
        let mut x = vec![1.0 / n as f64; n];
        for _ in 0..iterations {
            x = matrix.iter().map(|row| row.iter().zip(&x).map(|(a, b)| a * b).sum()).collect();
        }
        x
    }

    fn close(ours: &[f64], theirs: &[f64], within: f64) {
        for (node, (a, b)) in ours.iter().zip(theirs).enumerate() {
            assert!((a - b).abs() <= within, "node {node}: {a} and {b}");
        }
    }

    #[test]
    fn scores_are_those_of_a_dense_power_iteration() {
        // A degree of 1 leaves a third of the nodes without edges.
        for (scale, degree) in [(7, 8), (7, 1), (0, 3), (3, 2)] {
            let graph = Graph::uniform(scale, degree, 5);
            for iterations in [1, 2, 60] {
                let theirs = by_power_iteration(&graph, iterations);
                for way in [Direction::Pull, Direction::Push] {
                    let ours = ranks(&graph, iterations as u32, 0.0, way);
                    close(&ours.scores, &theirs, 1e-12);
                    assert!((ours.scores.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn a_graph_of_four_pages_has_the_scores_that_paper_and_pencil_give() {
        // A star: everybody points to 0, and 0 to nobody. With d the dangling part of the base,
        // leaf = b, centre = b + 0.85 * 3 b, and all four together are 1.
        let graph = Graph::from_edges(4, &[(1, 0), (2, 0), (3, 0)]);
        let leaf = 1.0 / 6.55;
        let scores = ranks(&graph, 500, 0.0, Direction::Pull).scores;
        close(&scores, &[3.55 * leaf, leaf, leaf, leaf], 1e-12);
    }

    #[test]
    fn it_stops_when_little_changes() {
        let graph = Graph::uniform(10, 16, 1);
        let ranks = ranks(&graph, 1_000, 1e-9, Direction::Pull);
        assert!(ranks.change <= 1e-9 && ranks.iterations < 40, "{}", ranks.iterations);
    }

    #[test]
    fn a_part_of_an_iteration_gives_the_best_of_its_nodes() {
        let graph = Graph::uniform(9, 8, 2);
        let served = Served::new(&graph);
        let exact = ranks(&graph, 200, 0.0, Direction::Pull).scores;
        let mut rng = Rng::new(8);
        for (score_nodes, best) in [(512, 10), (100, 3), (1, 4), (512, 512), (700, 1)] {
            let part = Part {
                share_from: rng.below(512) as usize,
                share_nodes: 200,
                score_from: rng.below(512) as usize,
                score_nodes,
            };
            let mut shares = served.shares(&graph);
            // What the task says it computes must not be taken from before.
            for range in ranges(part.share_from, part.share_nodes, 512) {
                shares[range].fill(f32::NAN);
            }
            let top = served.iterate(&graph, part, &mut shares, best);
            let mut nodes: Vec<usize> =
                (0..score_nodes.min(512)).map(|i| (part.score_from + i) % 512).collect();
            nodes.sort_by(|a, b| exact[*b].total_cmp(&exact[*a]));
            assert_eq!(top.len(), best.min(score_nodes));
            for (ranked, node) in top.iter().zip(nodes) {
                let off = (f64::from(ranked.score) / exact[node] - 1.0).abs();
                assert!(off < 1e-4, "{ranked:?} instead of {node} with {}", exact[node]);
            }
        }
    }

    #[test]
    fn places_go_round_the_end() {
        assert_eq!(ranges(3, 2, 8), [3..5, 0..0]);
        assert_eq!(ranges(6, 5, 8), [6..8, 0..3]);
        assert_eq!(ranges(9, 99, 8), [1..8, 0..1]);
    }
}

//! A directed graph in memory: both directions, each as one array of neighbours with an index
//! (compressed sparse rows).

use plimsoll_core::rng::Rng;

/// One direction of a graph.
#[derive(Debug, PartialEq, Eq)]
pub struct Rows {
    /// Beginnings of each node's neighbours; one more entry than nodes.
    starts: Vec<u64>,
    /// The neighbours, those of one node in ascending order.
    neighbours: Vec<u32>,
}

impl Rows {
    /// Sorts the edges of `edges` by their first node.
    fn new<E: Iterator<Item = (u32, u32)>>(nodes: usize, edges: impl Fn() -> E) -> Self {
        let mut starts = vec![0u64; nodes + 1];
        for (from, _) in edges() {
            starts[from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut neighbours = vec![0u32; starts[nodes] as usize];
        let mut places = starts[..nodes].to_vec();
        for (from, to) in edges() {
            let place = &mut places[from as usize];
            neighbours[*place as usize] = to;
            *place += 1;
        }
        let mut rows = Self { starts, neighbours };
        rows.squash();
        rows
    }

    /// Sorts the neighbours of each node, and drops repeated ones and the node itself.
    fn squash(&mut self) {
        let mut kept = 0;
        let mut start = 0;
        for node in 0..self.starts.len() - 1 {
            let end = self.starts[node + 1] as usize;
            self.neighbours[start..end].sort_unstable();
            let first_kept = kept;
            for place in start..end {
                let neighbour = self.neighbours[place];
                let is_repeated = kept > first_kept && self.neighbours[kept - 1] == neighbour;
                if !is_repeated && neighbour as usize != node {
                    self.neighbours[kept] = neighbour;
                    kept += 1;
                }
            }
            start = end;
            self.starts[node + 1] = kept as u64;
        }
        self.neighbours.truncate(kept);
        self.neighbours.shrink_to_fit();
    }

    /// The same edges, seen from their other ends.
    fn reversed(&self) -> Self {
        let nodes = self.starts.len() - 1;
        let mut starts = vec![0u64; nodes + 1];
        for to in &self.neighbours {
            starts[*to as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut neighbours = vec![0u32; self.neighbours.len()];
        let mut places = starts[..nodes].to_vec();
        for from in 0..nodes {
            for to in self.of(from) {
                let place = &mut places[*to as usize];
                neighbours[*place as usize] = from as u32;
                *place += 1;
            }
        }
        Self { starts, neighbours }
    }

    #[inline]
    fn of(&self, node: usize) -> &[u32] {
        &self.neighbours[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

/// A directed graph without loops and without repeated edges.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Graph {
    out: Rows,
    into: Rows,
}

impl Graph {
    /// `2^scale` nodes and `degree` times as many edges between nodes drawn uniformly; loops and
    /// repeated edges are dropped, so that a few are missing.
    pub(crate) fn uniform(scale: u32, degree: u32, seed: u64) -> Self {
        let nodes = 1usize << scale;
        let mask = (nodes - 1) as u64;
        let edges = (nodes as u64) * u64::from(degree);
        // The draws are made twice rather than kept: a list of edges would take as much memory as
        // the graph.
        Self::from_rows(Rows::new(nodes, || {
            let mut rng = Rng::new(seed);
            (0..edges).map(move |_| {
                let drawn = rng.next_u64();
                ((drawn >> 32 & mask) as u32, (drawn & mask) as u32)
            })
        }))
    }

    /// A graph of the given edges.
    #[cfg(test)]
    pub(crate) fn from_edges(nodes: usize, edges: &[(u32, u32)]) -> Self {
        Self::from_rows(Rows::new(nodes, || edges.iter().copied()))
    }

    fn from_rows(out: Rows) -> Self {
        let into = out.reversed();
        Self { out, into }
    }

    /// Number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.out.starts.len() - 1
    }

    /// Number of edges.
    pub(crate) fn edges(&self) -> usize {
        self.out.neighbours.len()
    }

    /// Nodes to which the edges of a node lead.
    #[inline]
    pub(crate) fn targets(&self, node: usize) -> &[u32] {
        self.out.of(node)
    }

    /// Nodes from which the edges to a node come.
    #[inline]
    pub(crate) fn sources(&self, node: usize) -> &[u32] {
        self.into.of(node)
    }

    /// Number of edges that leave a node.
    #[inline]
    pub(crate) fn out_degree(&self, node: usize) -> usize {
        self.targets(node).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn both_directions_hold_the_same_edges_once() {
        let graph = Graph::uniform(8, 6, 9);
        assert_eq!(graph.nodes(), 256);
        let mut seen = BTreeSet::new();
        for from in 0..256 {
            assert!(graph.targets(from).is_sorted() && graph.sources(from).is_sorted());
            for to in graph.targets(from) {
                assert_ne!(from, *to as usize);
                assert!(seen.insert((from as u32, *to)));
                assert!(graph.sources(*to as usize).contains(&(from as u32)));
            }
        }
        assert_eq!(seen.len(), graph.edges());
        let edges_in: usize = (0..256).map(|node| graph.sources(node).len()).sum();
        assert_eq!(edges_in, graph.edges());
        // 1536 draws: about 6 loops and 18 repetitions are missing.
        assert!((1_470..1_536).contains(&graph.edges()), "{}", graph.edges());
        assert_eq!(graph, Graph::uniform(8, 6, 9));
        assert_ne!(graph, Graph::uniform(8, 6, 10));
    }

    #[test]
    fn edges_drawn_are_edges_held() {
        let drawn = [(3, 1), (0, 1), (3, 1), (2, 2), (0, 3), (3, 0)];
        let graph = Graph::from_edges(4, &drawn);
        let targets: Vec<_> = (0..4).map(|node| graph.targets(node).to_vec()).collect();
        assert_eq!(targets, [vec![1, 3], vec![], vec![], vec![0, 1]]);
        let sources: Vec<_> = (0..4).map(|node| graph.sources(node).to_vec()).collect();
        assert_eq!(sources, [vec![3], vec![0, 3], vec![], vec![0]]);
    }
}

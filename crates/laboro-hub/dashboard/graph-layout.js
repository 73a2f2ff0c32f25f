// Where the nodes of a graph stand: in columns by how many come before them, in each column near those they follow.
// Beyond some hundreds of nodes each column becomes one.

export const NODES_MAX = 300;

/** `nodes` is [{ id, after: [id] }]. Gives each its `level`, counted from 0. */
export function levels(nodes) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const waits = new Map(nodes.map((node) => [node.id, 0]));
  const followers = new Map(nodes.map((node) => [node.id, []]));
  for (const node of nodes) {
    node.level = 0;
    node.after = node.after.filter((id) => byId.has(id) && id !== node.id);
    waits.set(node.id, node.after.length);
    for (const id of node.after) followers.get(id).push(node.id);
  }
  let free = nodes.filter((node) => waits.get(node.id) === 0).map((node) => node.id);
  while (free.length > 0) {
    const next = [];
    for (const id of free) {
      for (const follower of followers.get(id)) {
        const node = byId.get(follower);
        node.level = Math.max(node.level, byId.get(id).level + 1);
        waits.set(follower, waits.get(follower) - 1);
        if (waits.get(follower) === 0) next.push(follower);
      }
    }
    free = next;
  }
  return nodes;
}

/** One node for every level, with what is in it. */
export function fold(nodes, sum) {
  const byLevel = new Map();
  for (const node of nodes) {
    const list = byLevel.get(node.level) ?? byLevel.set(node.level, []).get(node.level);
    list.push(node);
  }
  return [...byLevel].sort(([a], [b]) => a - b).map(([level, list]) => ({
    ...sum(list), id: `level ${level}`, level, after: level > 0 ? [`level ${level - 1}`] : [],
  }));
}

/** Columns with their nodes in an order that keeps lines short: twice by the middle of those before, once after. */
export function columns(nodes) {
  const made = [];
  for (const node of nodes) (made[node.level] ??= []).push(node);
  const place = new Map();
  const mark = () => made.forEach((column) => column.forEach((node, at) => place.set(node.id, at / column.length)));
  const followers = new Map(nodes.map((node) => [node.id, []]));
  for (const node of nodes) node.after.forEach((id) => followers.get(id)?.push(node.id));
  const middle = (ids, other) => (ids.length === 0 ? other : ids.reduce((sum, id) => sum + place.get(id), 0) / ids.length);
  mark();
  for (const back of [false, true, false]) {
    for (const column of back ? [...made].reverse() : made) {
      const wanted = new Map(column.map((node) =>
        [node.id, middle(back ? followers.get(node.id) : node.after, place.get(node.id))]));
      column.sort((a, b) => wanted.get(a.id) - wanted.get(b.id));
      column.forEach((node, at) => place.set(node.id, at / column.length));
    }
  }
  return made;
}

// Makes elements. Text only ever becomes text: there is no way here to pass markup on, so a task may be called
// whatever it likes.

const SVG = "http://www.w3.org/2000/svg";

/** An element: h("a", { href, class, onclick }, "text", child, ...). */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for drawings. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "href") element.setAttribute(name, safe(value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  put(element, ...children);
  return element;
}

/** Links go to pages of this dashboard and nowhere else. */
function safe(href) {
  return String(href).startsWith("#/") ? href : "#/";
}

/** Adds children; what is neither a node nor a list is text. */
export function put(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/**
 * Makes what is inside like this, changing as little as possible: focus, selection, scroll and what was folded out
 * stay. What is swapped in has no listeners of its own; `act` hears for it.
 */
export function swap(element, ...children) {
  const fresh = document.createDocumentFragment();
  put(fresh, ...children);
  morph(element, fresh);
  return element;
}

function morph(old, fresh) {
  const wanted = [...fresh.childNodes];
  const there = [...old.childNodes];
  wanted.forEach((node, at) => {
    const known = there[at];
    if (!known) old.append(node);
    else if (!isSameKind(known, node)) known.replaceWith(node);
    else if (node.nodeType === Node.TEXT_NODE) {
      if (known.data !== node.data) known.data = node.data;
    } else if (node.dataset?.keep === undefined) {
      copyAttributes(known, node);
      morph(known, node);
    }
  });
  there.slice(wanted.length).forEach((node) => node.remove());
}

/** What has the same `data-keep` is left as it is, with all that was put into it since. */
function isSameKind(known, node) {
  return known.nodeName === node.nodeName && known.dataset?.keep === node.dataset?.keep;
}

function copyAttributes(known, node) {
  for (const { name } of [...known.attributes]) {
    // Whether a part is folded out is the reader's choice.
    if (!node.hasAttribute(name) && name !== "open") known.removeAttribute(name);
  }
  for (const { name, value } of node.attributes) {
    if (known.getAttribute(name) === value || name === "open") continue;
    // As an attribute it would be against the policy of these pages.
    if (name === "style") known.style.cssText = value;
    else known.setAttribute(name, value);
  }
}

/** Buttons below `element` say what they do in `data-do`; here is who does it. */
export function act(element, doers) {
  element.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    const doer = button && doers[button.dataset.do];
    if (doer) doer(button.dataset, button);
  });
}

/** A width in percent. The policy of these pages forbids style attributes, not properties set from here. */
export function wide(element, share) {
  element.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return element;
}

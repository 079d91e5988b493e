/** Elements, made without ever reading text as HTML. */

/**
 * A new element.
 * @param {string} tag
 * @param {Object<string, *>} attributes functions become listeners; true is an empty attribute;
 *   false, null and undefined are left out
 * @param {...(Node|string)} children
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id);
